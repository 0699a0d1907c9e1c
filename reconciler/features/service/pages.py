"""The HTTP pages of a service: ``/metrics``, ``/healthz`` and ``/readyz``.

The pages read, and never change anything. They have no login and no TLS, so the service listens on loopback unless another
address is given. A connection is for one request.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import MetricsHandler

from reconciler.errors import ReconcilerError
from reconciler.formats import Json

HealthPage: TypeAlias = Callable[[], tuple[bool, Mapping[str, Json]]]
"""Whether all is well, and the document."""

_PATIENCE_S: Final = 5.0
_LOOK_S: Final = 0.1
"""How often the server looks whether it shall end."""


class EndpointError(ReconcilerError):
    """The address cannot be listened on. Another process has it, most likely a second one of these."""

    failure_reason = "address-in-use"


@contextlib.contextmanager
def served(host: str, port: int, registry: CollectorRegistry, health: Mapping[str, HealthPage]) -> Iterator[tuple[str, int]]:
    """Serve while the block lasts, in threads. Yields the address that is listened on: ``port`` 0 takes a free one.

    Raises ``EndpointError`` when that is not possible.
    """
    handler = type("_Pages", (_PageHandler,), {"registry": registry, "health": health})
    try:
        server = _Server(host, port, handler)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        msg = (
            f"cannot listen on {host}:{port}: {reason}. Another process, perhaps a second run, may have it: choose "
            "--port (0 takes a free one) or --address"
        )
        raise EndpointError(msg) from error
    thread = threading.Thread(target=server.serve_forever, args=(_LOOK_S,), name="endpoint", daemon=True)
    with server:
        thread.start()
        try:
            yield server.socket.getsockname()[:2]
        finally:
            server.shutdown()
            thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host: str, port: int, handler: type[_PageHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients go away in the middle, or are too slow or too long."""


class _PageHandler(MetricsHandler):
    health: Mapping[str, HealthPage]
    timeout = _PATIENCE_S
    server_version, sys_version = "kafka-quotas", ""

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        path = self.path.partition("?")[0]
        if path == "/metrics":
            super().do_GET()
        elif path in self.health:
            is_well, document = self.health[path]()
            self._answer(HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE, json.dumps(document), "application/json")
        else:
            self._answer(HTTPStatus.NOT_FOUND, f"/metrics, {', '.join(self.health)}", "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
