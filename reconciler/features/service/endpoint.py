"""The HTTP endpoint (``/metrics``, ``/healthz``, ``/readyz``), and whether the service is alive and its data are recent.

The endpoint reads, and never changes anything. It has no login and no TLS, so it listens on loopback unless another address is
given. A connection is for one request and has a deadline for all of it, however slowly bytes come or go. Where more are open than
may be, the oldest is closed: a client that is slow on purpose loses its place to the next one, such as a probe of the service's
health.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Final, Protocol, Self, TypeAlias

from reconciler.errors import ReconcilerError
from reconciler.features.service.passes import PassOutcome
from reconciler.formats import Json
from reconciler.ports import Clock

_MOST_AT_ONCE: Final = 128
_LONGEST_HEAD: Final = 16 * 1024
_TEXT: Final = "text/plain; charset=utf-8"
_WAITING: Final = 256
"""Connections that the system keeps until they are accepted."""
Page: TypeAlias = Callable[[str], tuple[HTTPStatus, bytes, str]]
"""Given an ``Accept`` header: status, body, content type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLimits:
    """Seconds. ``silent``: how long the loop may do one thing; ``stale``: how old the last look at the cluster may be."""

    silent: float = 1_200.0
    stale: float = 1_000.0


class Health:
    """Written by the loop, read by the endpoint; each value is replaced as a whole, so no lock is needed."""

    def __init__(self, limits: HealthLimits, *, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._beat = clock.monotonic()
        self._looked: float | None = None
        self._result: str | None = None

    def beat(self) -> None:
        """The loop is alive."""
        self._beat = self._clock.monotonic()

    def note_pass(self, outcome: PassOutcome) -> None:
        """A pass ended; it looked at manifests and cluster when it has counts."""
        self.beat()
        self._result = outcome.result.value
        if outcome.counts is not None:
            self._looked = self._clock.monotonic()

    def alive(self) -> tuple[bool, dict[str, Json]]:
        """False when the loop has been silent for too long."""
        silent = self._clock.monotonic() - self._beat
        alive = silent <= self._limits.silent
        return alive, {"status": "alive" if alive else "stuck", "seconds_since_last_sign": round(silent, 1)}

    def ready(self) -> tuple[bool, dict[str, Json]]:
        """True when manifests and cluster were both read not too long ago."""
        if self._looked is None:
            return False, {"status": "not ready", "why": "manifests and cluster were not read yet", "last_pass": self._result}
        age = self._clock.monotonic() - self._looked
        ready = age <= self._limits.stale
        document: dict[str, Json] = {"status": "ready" if ready else "not ready", "last_pass": self._result}
        return ready, {**document, "seconds_since_last_look": round(age, 1)}


class HealthPages(Protocol):
    """What the pages about health show: whether it is good, and a JSON document."""

    def alive(self) -> tuple[bool, dict[str, Json]]:
        """Return whether ``/healthz`` is good, and its document."""
        ...

    def ready(self) -> tuple[bool, dict[str, Json]]:
        """Return whether ``/readyz`` is good, and its document."""
        ...


class HealthOfClusters:
    """The health of a service for many clusters: alive while each of its loops is, ready while each cluster is read."""

    def __init__(self) -> None:
        self._clusters: dict[str, Health] = {}

    def add(self, cluster: str, health: Health) -> None:
        """One more cluster."""
        self._clusters = {**self._clusters, cluster: health}

    def remove(self, cluster: str) -> None:
        """A cluster that the service no longer follows."""
        self._clusters = {name: health for name, health in self._clusters.items() if name != cluster}

    def alive(self) -> tuple[bool, dict[str, Json]]:
        """False when one loop has been silent for too long."""
        return _of_all({name: health.alive() for name, health in self._clusters.items()}, good="alive", bad="stuck")

    def ready(self) -> tuple[bool, dict[str, Json]]:
        """True when each cluster was read not too long ago; false while there is none."""
        good, document = _of_all({name: health.ready() for name, health in self._clusters.items()}, good="ready", bad="not ready")
        return good and bool(self._clusters), document


def _of_all(answers: Mapping[str, tuple[bool, dict[str, Json]]], *, good: str, bad: str) -> tuple[bool, dict[str, Json]]:
    """One answer for all clusters; it has the documents of those that are not good."""
    failing: dict[str, Json] = {name: document for name, (is_good, document) in sorted(answers.items()) if not is_good}
    return not failing, {"status": bad if failing else good, "clusters": len(answers), "failing": failing}


class EndpointError(ReconcilerError):
    """The address cannot be listened on. Another process has it, most likely a second one of these."""

    failure_reason = "address-in-use"


class Endpoint:
    """Serves while the block lasts, in threads of its own. ``port`` 0 takes a free one, which ``address`` shows.

    ``patience``: the seconds after which a connection is closed, whether or not its request is complete or its answer is read.
    """

    def __init__(
        self, host: str, port: int, health: HealthPages, exposition: Callable[[str], tuple[bytes, str]], *, patience: float = 5.0
    ) -> None:
        pages: dict[str, Page] = {
            "/metrics": lambda accept: (HTTPStatus.OK, *exposition(accept)),
            "/healthz": lambda _: _as_page(health.alive()),
            "/readyz": lambda _: _as_page(health.ready()),
        }
        self._connections = _Connections(pages, patience)
        try:
            self._socket = _listening_socket(host, port)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            msg = (
                f"cannot listen on {host}:{port}: {reason}. Another process, perhaps a second run, may have it: choose "
                "--port (0 takes a free one) or --address"
            )
            raise EndpointError(msg) from error
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="endpoint", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that are listened on."""
        host, port = self._socket.getsockname()[:2]
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
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._serving())
        finally:
            self._loop.close()

    async def _serving(self) -> None:
        accept = self._connections.accept
        async with await asyncio.start_server(accept, sock=self._socket, limit=_LONGEST_HEAD, backlog=_WAITING) as server:
            await self._stop.wait()
            server.close()
            await self._connections.close_all()


class _Connections:
    """Those that are open, the oldest first."""

    def __init__(self, pages: Mapping[str, Page], patience: float) -> None:
        self._pages = pages
        self._patience = patience
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one more."""
        if len(self._open) >= _MOST_AT_ONCE:
            oldest = next(iter(self._open))
            self._open.pop(oldest).transport.abort()
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._request(reader, writer))
        self._open[task] = writer
        task.add_done_callback(lambda done: self._open.pop(done, None))

    async def close_all(self) -> None:
        """Close the connections that are still open."""
        tasks = [*self._open]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # A client that went away in the middle, or is too slow or too long, is not worth a word.
            with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError, TimeoutError):
                async with asyncio.timeout(self._patience):
                    writer.write(self._answer(await reader.readuntil(b"\r\n\r\n")))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        finally:
            writer.transport.abort()

    def _answer(self, head: bytes) -> bytes:
        line, *fields = head.decode("latin-1").split("\r\n")
        words = line.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _response(HTTPStatus.BAD_REQUEST, b"one request of HTTP/1.1\n", _TEXT)
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return _response(HTTPStatus.NOT_IMPLEMENTED, b"GET and HEAD\n", _TEXT)
        page = self._pages.get(target.partition("?")[0])
        if page is None:
            status, body, kind = HTTPStatus.NOT_FOUND, b"/metrics, /healthz, /readyz\n", _TEXT
        else:
            named = (field.partition(":") for field in fields)
            accept = next((value.strip() for name, _, value in named if name.lower() == "accept"), "")
            status, body, kind = page(accept)
        return _response(status, body, kind, with_body=method == "GET")


def _response(status: HTTPStatus, body: bytes, kind: str, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nServer: kafka-quotas\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (body if with_body else b"")


def _listening_socket(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        # At once, so that a port that another process listens on is noticed here.
        listening.listen(_WAITING)
    except BaseException:
        listening.close()
        raise
    return listening


def _as_page(answer: tuple[bool, dict[str, Json]]) -> tuple[HTTPStatus, bytes, str]:
    good, document = answer
    status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return status, f"{json.dumps(document)}\n".encode(), "application/json"
