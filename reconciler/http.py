"""Requests over HTTP: addresses and who is sent them, connections, proxies, and answers that may be slow, endless or packed."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reconciler.errors import FileAccessError, ForgeError, MissingPackageError, UsageError
from reconciler.model import escaped

if TYPE_CHECKING:
    import urllib3

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_PORTS: Final = {"https": 443, "http": 80}

_MOST_BYTES: Final = 20_000_000
_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 20.0
_WHOLE_SECONDS: Final = 60.0
_BLOCK: Final = 1 << 18
_GZIP: Final = 31
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAddress:
    """The base of every request, e.g. ``https://api.github.com``. ``origin``: its scheme, host and port."""

    base: str
    origin: tuple[str, str, int]

    def url(self, path: str) -> str:
        """The whole address of a path below the base."""
        return self.base + path

    def joined(self, url: str, reference: str) -> str:
        """Resolve a redirection or a link to the next page, found in the answer from ``url``.

        Raises ``ForgeError`` for an address of another server, which must not be sent the token.
        """
        try:
            target = urllib.parse.urljoin(url, reference)
        except ValueError:
            target = reference
        if _origin(target) != self.origin:
            shown = escaped(target[:200])
            raise ForgeError(f"{self.base} sends us on to another server ({shown}), which is not given the token")
        return target


def api_address(text: str, *, api: str, example: str) -> ApiAddress:
    """The address that the user gave; ``api`` and ``example`` are words of the error.

    Raises ``UsageError`` for text that is not an address, or one that would carry the token in the clear.
    """
    origin = _origin(text)
    if origin is None or not (text.isascii() and text.isprintable()) or any(sign in text for sign in " @?#"):
        raise UsageError(f"the address of {api} is a URL such as {example}, not {escaped(text)!r}")
    if origin[0] == "http" and origin[1] not in _LOOPBACK:
        raise UsageError(f"the address of {api} must begin with https://, or the token can be read on its way: {text}")
    return ApiAddress(base=text.rstrip("/"), origin=origin)


def _origin(text: str) -> tuple[str, str, int] | None:
    try:
        parts = urllib.parse.urlsplit(text)
        if parts.scheme in _PORTS and parts.hostname:
            return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]
    except ValueError:
        pass
    return None


class NoAnswerError(Exception):
    """There was no whole answer; whether the request was done is not known. ``final``: trying again would not help."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class LateAnswerError(NoAnswerError):
    """The deadline passed before the answer was whole. ``size``: the bytes of the body that came, unpacked."""

    def __init__(self, size: int = 0) -> None:
        super().__init__("the answer was not complete in time" if size else "the server did not answer in time")
        self.size = size


class PackedAnswerError(NoAnswerError):
    """The answer is packed in a way that was not asked for, or its end is missing."""


class LongAnswerError(NoAnswerError):
    """The answer has more bytes than are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Http:
    """Connections to one server, through the proxy that the environment names for it, if any."""

    def __init__(
        self, address: ApiAddress, *, purpose: str, extra: str, ca_file: Path | None = None, seconds: float = _READ_SECONDS
    ) -> None:
        """``purpose`` and ``extra``: what needs a library, and the extra that installs it.

        ``seconds``: the longest wait for a connection and for each part of the answer.
        ``ca_file``: trust these authorities in PEM instead of those of the system. Raises ``FileAccessError``,
        ``UsageError`` and ``MissingDependencyError``.
        """
        try:
            import urllib3
        except ImportError as error:
            raise MissingPackageError(f"{purpose} needs", "urllib3", extra=extra) from error
        timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, seconds), read=seconds)
        proxy = proxy_for(address)
        context = _trust_in(ca_file) if ca_file else None
        try:
            self._pool: urllib3.PoolManager = (
                urllib3.ProxyManager(
                    proxy, proxy_headers=_proxy_headers(proxy), timeout=timeout, retries=False, ssl_context=context
                )
                if proxy
                else urllib3.PoolManager(timeout=timeout, retries=False, ssl_context=context)
            )
        except ValueError:
            # The address may contain a password, so neither it nor the error is shown.
            raise UsageError(
                f"the proxy for {address.origin[0]} in the environment is not a URL such as http://proxy:3128"
            ) from None

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Send one request. Raises ``NoAnswerError``."""
        exchange = answering(self._pool, method, url, seconds=_WHOLE_SECONDS, headers=dict(headers), body=body)
        with exchange as (response, blocks):
            content = joined(blocks, _MOST_BYTES)
        named = {name.lower(): value for name, value in response.headers.items()}
        return Answer(status=response.status, headers=named, body=content)

    def close(self) -> None:
        """Give the connections back."""
        self._pool.clear()


def _trust_in(file: Path) -> ssl.SSLContext:
    """TLS that trusts the authorities of a PEM file, and no others."""
    try:
        return ssl.create_default_context(cafile=str(file))
    except ssl.SSLError as error:
        raise FileAccessError(f"{file} has no certificates in PEM format") from error
    except OSError as error:
        raise FileAccessError(f"cannot read the certificates in {file}: {error.strerror}") from error


def proxy_for(address: ApiAddress) -> str | None:
    """The proxy of the environment (``https_proxy``, ``no_proxy``, in either case), never for this machine itself."""
    scheme, host, _ = address.origin
    if host in _LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.request.getproxies().get(scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _proxy_headers(proxy: str) -> Mapping[str, str]:
    import urllib3

    parts = urllib.parse.urlsplit(proxy)
    if parts.username is None:
        return {}
    login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    return urllib3.make_headers(proxy_basic_auth=login)


@contextlib.contextmanager
def answering(
    pool: urllib3.PoolManager, method: str, url: str, *, seconds: float, **options: Any
) -> Iterator[tuple[urllib3.BaseHTTPResponse, Iterator[bytes]]]:
    """Send a request, and give the head of its answer and the blocks of its body. The connection is given back at the end.

    ``seconds``: from now to the last byte. Raises ``NoAnswerError``, also where the blocks are taken.
    """
    from urllib3.exceptions import HTTPError, ReadTimeoutError, SSLError

    deadline = time.monotonic() + seconds

    def send() -> urllib3.BaseHTTPResponse:
        return pool.request(method, url, redirect=False, retries=False, preload_content=False, **options)

    response: urllib3.BaseHTTPResponse | None = None
    is_whole = False
    try:
        response = result_until(deadline, send, drop=lambda late: late.close())
        yield response, _blocks(deadline, response)
        is_whole = True
    except SSLError as error:
        raise NoAnswerError(f"no trusted TLS connection: {error}", final=True) from error
    except zlib.error as error:
        raise PackedAnswerError("the answer cannot be unpacked", final=True) from error
    except ReadTimeoutError as error:
        raise LateAnswerError from error
    except (HTTPError, OSError, ValueError) as error:
        raise NoAnswerError(_words(error)) from error
    finally:
        if response is not None:
            if not is_whole:
                response.close()
            response.release_conn()


def joined(blocks: Iterable[bytes], most_bytes: int) -> bytes:
    """Return the whole body. Raises ``LongAnswerError``, and what the blocks raise."""
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > most_bytes:
            raise LongAnswerError(f"the answer has more than {most_bytes} bytes", final=True)
    return b"".join(parts)


def _blocks(deadline: float, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The body, unpacked, in blocks of at most ``_BLOCK`` bytes: a packed megabyte may be a gigabyte."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise PackedAnswerError("the answer is packed in a way that was not asked for", final=True)
    unpack = zlib.decompressobj(wbits=_GZIP) if encoding == "gzip" else None
    size = 0
    while chunk := response.read1(_BLOCK, decode_content=False):
        while chunk:
            block = unpack.decompress(chunk, _BLOCK) if unpack else chunk
            chunk = unpack.unconsumed_tail if unpack else b""
            size += len(block)
            if time.monotonic() > deadline:
                raise LateAnswerError(size)
            if block:
                yield block
    if unpack is not None and not unpack.eof:
        raise PackedAnswerError("the answer is not complete", final=True)


def in_background(work: Callable[[], Result]) -> Future[Result]:
    """Begin work in a thread that keeps nothing alive."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - who waits for the result gets it
            future.set_exception(error)

    threading.Thread(target=run, name="request", daemon=True).start()
    return future


def result_until(deadline: float, work: Callable[[], Result], *, drop: Callable[[Result], object] | None = None) -> Result:
    """Return what ``work`` returns. ``deadline``: as ``time.monotonic``. Raises ``LateAnswerError``, and what ``work`` raises.

    A socket's timeout begins anew with each byte. So a server that drips is left to a thread that keeps nothing alive, and a
    result that comes too late goes to ``drop``.
    """
    future = in_background(work)
    try:
        return future.result(timeout=max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        if future.done():
            return future.result()  # a timeout of the socket, or a result that came just now
        if drop is not None:
            future.add_done_callback(lambda done: None if done.exception() else drop(done.result()))
        raise LateAnswerError from None


def _words(error: Exception) -> str:
    """The cause in a few words; urllib3's own text names objects in memory."""
    from urllib3.exceptions import IncompleteRead, NameResolutionError, NewConnectionError, ProtocolError, ProxyError
    from urllib3.exceptions import TimeoutError as Timeout

    for kind, words in (
        (NameResolutionError, "the name of the host cannot be resolved"),
        (NewConnectionError, "no connection"),  # a kind of timeout to urllib3
        (Timeout, "the server did not answer in time"),
        (ProxyError, "the proxy did not let us through"),
        (IncompleteRead, "the answer was cut short"),
        (ProtocolError, "the connection was lost, or the answer was cut short"),
    ):
        if isinstance(error, kind):
            cause = error.__cause__
            return f"{words} ({cause.strerror.lower()})" if isinstance(cause, OSError) and cause.strerror else words
    return "no connection" if not isinstance(error, ValueError) else "the answer is not HTTP"
