"""One HTTP request and its whole answer, by urllib3: bounded in time and size, never repeated or redirected here."""

from __future__ import annotations

import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.errors import MissingDependencyError, UsageError
from reconciler.integrations.github.address import ApiAddress

if TYPE_CHECKING:
    import urllib3

_MOST_BYTES: Final = 20_000_000
_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 20.0
_WHOLE_SECONDS: Final = 60.0
_INSTALL: Final = "pip install 'kafka-quota-reconciler[github]'"


class NoAnswerError(Exception):
    """There was no whole answer; whether the request was done is not known. ``final``: trying again would not help."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Http:
    """Connections to one server, through the proxy that the environment names for it, if any."""

    def __init__(self, address: ApiAddress) -> None:
        try:
            import urllib3
        except ImportError as error:
            raise MissingDependencyError(f"posting comments needs urllib3, which is not installed: {_INSTALL}") from error
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS)
        proxy = proxy_for(address)
        try:
            self._pool: urllib3.PoolManager = (
                urllib3.ProxyManager(proxy, proxy_headers=_proxy_headers(proxy), timeout=timeout, retries=False)
                if proxy
                else urllib3.PoolManager(timeout=timeout, retries=False)
            )
        except ValueError:
            # The address may hold a password, so neither it nor the error is shown.
            raise UsageError(
                f"the proxy for {address.scheme} in the environment is not a URL such as http://proxy:3128"
            ) from None

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Send one request. Raises ``NoAnswerError``."""
        from urllib3.exceptions import HTTPError, SSLError

        try:
            response = self._pool.request(
                method, url, headers=dict(headers), body=body, redirect=False, retries=False, preload_content=False
            )
            try:
                content = _content(response)
            finally:
                response.release_conn()
        except SSLError as error:
            raise NoAnswerError(f"no trusted TLS connection: {error}", final=True) from error
        except (HTTPError, OSError, ValueError) as error:
            raise NoAnswerError(_words(error)) from error
        named = {name.lower(): value for name, value in response.headers.items()}
        return Answer(status=response.status, headers=named, body=content)

    def close(self) -> None:
        """Give the connections back."""
        self._pool.clear()


def proxy_for(address: ApiAddress) -> str | None:
    """The proxy of the environment (``https_proxy``, ``no_proxy``, in either case), never for this machine itself."""
    if address.on_this_machine or urllib.request.proxy_bypass(address.host):
        return None
    proxy = urllib.request.getproxies().get(address.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _proxy_headers(proxy: str) -> Mapping[str, str]:
    import urllib3

    parts = urllib.parse.urlsplit(proxy)
    if parts.username is None:
        return {}
    login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    return urllib3.make_headers(proxy_basic_auth=login)


def _content(response: urllib3.BaseHTTPResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    end = time.monotonic() + _WHOLE_SECONDS
    while part := response.read1(65_536):
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise NoAnswerError(f"the answer has more than {_MOST_BYTES} bytes", final=True)
        if time.monotonic() > end:
            raise NoAnswerError(f"the answer was not complete after {_WHOLE_SECONDS:g} seconds")
    return b"".join(parts)


def _words(error: Exception) -> str:
    """The cause in a few words; urllib3's own text names objects in memory."""
    from urllib3.exceptions import IncompleteRead, NameResolutionError, NewConnectionError, ProtocolError, ProxyError
    from urllib3.exceptions import TimeoutError as Timeout

    for kind, words in (
        (NameResolutionError, "its name cannot be resolved"),
        (NewConnectionError, "no connection"),  # a kind of timeout to urllib3
        (Timeout, "it did not answer in time"),
        (ProxyError, "the proxy did not let us through"),
        (IncompleteRead, "its answer was cut short"),
        (ProtocolError, "the connection was lost, or its answer was cut short"),
    ):
        if isinstance(error, kind):
            return words
    return "no connection" if not isinstance(error, ValueError) else "its answer is not HTTP"
