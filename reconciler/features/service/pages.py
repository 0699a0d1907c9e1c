"""The HTTP pages (``/metrics``, ``/healthz``, ``/readyz``), and whether the service is alive and its data are recent.

The pages read, and never change anything. They have no login and no TLS, so the service listens on loopback unless another
address is given. A connection is for one request. Where more are open than may be, the oldest is closed: a client that is slow
on purpose loses its place to the next one, such as a probe of the service's health.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Final, Self

from reconciler.errors import ReconcilerError
from reconciler.features.service.passes import PassOutcome
from reconciler.formats import Json
from reconciler.ports import Clock

_MOST_AT_ONCE: Final = 128
_PATIENCE_S: Final = 5.0
_LOOK_S: Final = 0.1
"""How often the server looks whether it shall end."""
_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(slots=True, kw_only=True)
class _Signs:
    """Of one cluster: the last sign of life and the last look at manifests and cluster (monotonic), and the last result."""

    beat_s: float
    looked_s: float | None = None
    result: str | None = None


class Health:
    """Written by the loop and the passes, read by the pages.

    ``silent_s``: how long one thing may take; ``stale_s``: how old the last look at a cluster may be.
    """

    def __init__(self, *, silent_s: float, stale_s: float, clock: Clock) -> None:
        self._silent_s = silent_s
        self._stale_s = stale_s
        self._clock = clock
        self._loop_s = clock.monotonic()
        self._clusters: dict[str, _Signs] = {}

    def beat(self) -> None:
        """Note that the loop is alive."""
        self._loop_s = self._clock.monotonic()

    def beat_of(self, cluster: str) -> None:
        """Note that a pass over this cluster goes on, or that none is due."""
        now = self._clock.monotonic()
        self._clusters.setdefault(cluster, _Signs(beat_s=now)).beat_s = now

    def note(self, cluster: str, outcome: PassOutcome) -> None:
        """Note that a pass ended; it looked at manifests and cluster when it has counts."""
        self.beat_of(cluster)
        signs = self._clusters[cluster]
        signs.result = outcome.result.value
        if outcome.counts is not None:
            signs.looked_s = self._clock.monotonic()

    def remove(self, cluster: str) -> None:
        """Forget a cluster that the service no longer follows."""
        self._clusters.pop(cluster, None)

    def alive(self) -> tuple[bool, dict[str, Json]]:
        """Return whether the loop and every pass showed a sign of life not too long ago, and the document of ``/healthz``."""
        now = self._clock.monotonic()
        silent = {name: now - signs.beat_s for name, signs in self._clusters.copy().items()}
        failing: dict[str, Json] = {
            name: {"seconds_since_last_sign": round(seconds, 1)}
            for name, seconds in sorted(silent.items())
            if seconds > self._silent_s
        }
        good = not failing and now - self._loop_s <= self._silent_s
        return good, {"status": "alive" if good else "stuck", "clusters": len(silent), "failing": failing}

    def ready(self) -> tuple[bool, dict[str, Json]]:
        """Return whether each cluster was read not too long ago, and there is one, and the document of ``/readyz``."""
        now, clusters = self._clock.monotonic(), self._clusters.copy()
        failing: dict[str, Json] = {
            name: {
                "last_pass": signs.result,
                "seconds_since_last_look": None if signs.looked_s is None else round(now - signs.looked_s, 1),
            }
            for name, signs in sorted(clusters.items())
            if signs.looked_s is None or now - signs.looked_s > self._stale_s
        }
        good = bool(clusters) and not failing
        return good, {"status": "ready" if good else "not ready", "clusters": len(clusters), "failing": failing}


class EndpointError(ReconcilerError):
    """The address cannot be listened on. Another process has it, most likely a second one of these."""

    failure_reason = "address-in-use"


class Endpoint:
    """Serves while the block lasts, in threads of its own. ``port`` 0 takes a free one, which ``address`` shows."""

    def __init__(self, host: str, port: int, health: Health, exposition: Callable[[str], tuple[bytes, str]]) -> None:
        pages: dict[str, Callable[[str], tuple[HTTPStatus, bytes, str]]] = {
            "/metrics": lambda accept: (HTTPStatus.OK, *exposition(accept)),
            "/healthz": lambda _: _as_page(health.alive()),
            "/readyz": lambda _: _as_page(health.ready()),
        }
        try:
            self._server = _Server(host, port, type("_Pages", (_Handler,), {"pages": pages}))
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            msg = (
                f"cannot listen on {host}:{port}: {reason}. Another process, perhaps a second run, may have it: choose "
                "--port (0 takes a free one) or --address"
            )
            raise EndpointError(msg) from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_LOOK_S,), name="endpoint", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that are listened on."""
        host, port = self._server.socket.getsockname()[:2]
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
        self._thread.join()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    """A thread for each connection, and no more connections than may be."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host: str, port: int, handler: type[_Handler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= _MOST_AT_ONCE:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Close the connections that are still open, too."""
        with self._lock:
            for request in self._open:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients go away in the middle, or are too slow or too long."""


class _Handler(BaseHTTPRequestHandler):
    pages: dict[str, Callable[[str], tuple[HTTPStatus, bytes, str]]]
    timeout = _PATIENCE_S
    server_version, sys_version = "kafka-quotas", ""

    def do_GET(self) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        if page is None:
            status, body, kind = HTTPStatus.NOT_FOUND, b"/metrics, /healthz, /readyz\n", _TEXT
        else:
            status, body, kind = page(self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Log nothing: a scrape comes every few seconds."""


def _as_page(answer: tuple[bool, dict[str, Json]]) -> tuple[HTTPStatus, bytes, str]:
    good, document = answer
    status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return status, f"{json.dumps(document)}\n".encode(), "application/json"
