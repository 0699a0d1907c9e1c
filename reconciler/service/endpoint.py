"""The HTTP endpoint: ``/metrics``, ``/healthz``, ``/readyz``, nothing else; it reads, and never changes anything.

There is no login and no TLS, so it listens on loopback unless told otherwise. Connections are few and short: clients that say
nothing are cut off, and more than a few at once are turned away, so that nobody can make the service grow.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from reconciler.errors import ReconcilerError
from reconciler.formats.canonical import Json
from reconciler.service.health import Health

_MOST_AT_ONCE: Final = 16
_SILENT_SECONDS: Final = 10.0

Page: TypeAlias = Callable[[str], tuple[HTTPStatus, bytes, str]]
"""Given an ``Accept`` header: status, body, content type."""


class EndpointError(ReconcilerError):
    """The address cannot be listened on. Another process has it, most likely a second one of these."""

    failure_reason = "address-in-use"


class Endpoint:
    """Serves while the block lasts, in threads of its own. ``port`` 0 takes a free one; ``address`` tells which."""

    def __init__(self, host: str, port: int, health: Health, exposition: Callable[[str], tuple[bytes, str]]) -> None:
        pages: dict[str, Page] = {
            "/metrics": lambda accept: (HTTPStatus.OK, *exposition(accept)),
            "/healthz": lambda _: _as_page(health.alive()),
            "/readyz": lambda _: _as_page(health.ready()),
        }
        handler = type("Handler", (_Handler,), {"pages": pages})
        try:
            self._server = _Server(host, port, handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            msg = (
                f"cannot listen on {host}:{port}: {reason}; another process, perhaps a second run, may have it: choose "
                "--port (0 takes a free one) or --address"
            )
            raise EndpointError(msg) from error
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that are listened on."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    @property
    def url(self) -> str:
        """The root, for people."""
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._places = threading.BoundedSemaphore(_MOST_AT_ONCE)
        super().__init__((host, port), handler)

    def server_bind(self) -> None:
        # The parent's looks up its own name, which may take seconds where there is no DNS.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is not worth a word."""


class _Handler(BaseHTTPRequestHandler):
    pages: Mapping[str, Page] = {}
    timeout = _SILENT_SECONDS
    server_version = "kafka-quotas"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Scrapes are no news, and what strangers send does not belong into the log."""

    def _answer(self, *, with_body: bool) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        if page is None:
            status, body, kind = HTTPStatus.NOT_FOUND, b"/metrics, /healthz, /readyz\n", "text/plain; charset=utf-8"
        else:
            status, body, kind = page(self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _as_page(answer: tuple[bool, dict[str, Json]]) -> tuple[HTTPStatus, bytes, str]:
    good, document = answer
    status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return status, f"{json.dumps(document)}\n".encode(), "application/json"
