"""Raw samples of a Prometheus server, or of one that answers like it (Mimir, Thanos, VictoriaMetrics), by its HTTP API.

Samples come from instant queries with a range selector, which return what was scraped; range queries interpolate by step.
Source: Prometheus documentation, "HTTP API" (``/api/v1/query``).
"""

from __future__ import annotations

import ipaddress
import json
import logging
import time
import urllib.parse
import zlib
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError, UsageError
from reconciler.features.prometheus.http import (
    HttpLogin,
    LateAnswerError,
    PackedAnswerError,
    blocks_until,
    checked_address,
    request_until,
)
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.text import duration

if TYPE_CHECKING:
    import urllib3

_TRIES: Final = 5
_BACKOFF_S: Final = 0.5
_PASSING: Final = (429, 500, 502, 503, 504)
_SHOWN: Final = 300
_MOST_BYTES: Final = 128 * 1024 * 1024
_LONGEST_MESSAGE: Final = 1 << 16
_SLOW_BYTES: Final = 1 << 20
"""An answer of less than this at its deadline is slow, not long."""
_DEADLINE: Final = 1.5
"""As many timeouts an answer may take from the request to its last byte."""
_LONGEST_WAIT_S: Final = 60.0
_WORTH_A_LINE_S: Final = 5.0
_LONGEST_NUMBER: Final = 12
_ADVICE: Final = {
    301: "The server redirects to another address. Give that address.",
    302: "The server redirects, perhaps to a login page. Check the address and --http-config.",
    307: "The server redirects to another address. Give that address.",
    308: "The server redirects to another address. Give that address.",
    401: "The server refuses the login. Check --http-config.",
    403: "The login may not read these metrics. Check --http-config.",
    404: "This address has no Prometheus API. Check the path.",
    429: "The server limits how often it is asked. Try again later.",
}
_TOO_MUCH: Final = ("too many samples", "timed out", "exceeded", "limit", "too long", "too large", "more than")
"""In messages of Prometheus, Thanos, Mimir and VictoriaMetrics about a query that a shorter time makes possible."""
_log: Final = logging.getLogger(__name__)


class TooManySamplesError(TrafficError):
    """More than the server gives at once, by number, time or bytes: ask for a shorter time."""


class PrometheusApi:
    """Queries of one server. Every method raises ``TrafficError`` for a server that does not answer as Prometheus does."""

    def __init__(
        self,
        address: str,
        login: HttpLogin | None = None,
        *,
        timeout_s: float = 60.0,
        most_bytes: int = _MOST_BYTES,
        on_wait: Callable[[str], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``address``: ``http(s)://HOST[:PORT][/PATH]``. Raises ``UsageError`` for another one.

        ``timeout_s``: for a byte; a whole answer may take half as long again. ``on_wait``: gets a sentence before a long pause.
        """
        login = login or HttpLogin()
        self._pool = login.pool(maxsize=4)
        import urllib3

        if checked_address(address, "Prometheus server", "prometheus+http(s)://HOST[:PORT][/PATH]").query:
            raise UsageError(f"A Prometheus server is prometheus+http(s)://HOST[:PORT][/PATH], not {escaped(address)!r}")
        self.address = address.rstrip("/")
        self._headers = dict(login.headers)
        if not _is_loopback(self.address):
            # Compression costs the server more time than a network of 1 GB/s does.
            self._headers["Accept-Encoding"] = "gzip"
        self._timeout_s, self._most_bytes = timeout_s, most_bytes
        self._on_wait, self._sleep = on_wait, sleep
        self._retries = urllib3.Retry(
            total=_TRIES, backoff_factor=_BACKOFF_S, allowed_methods=None, raise_on_status=False, redirect=0
        )
        self._timeout = urllib3.Timeout(connect=10.0, read=timeout_s)

    def range_samples(self, selector: str, *, end_s: float, length_s: int) -> bytes:
        """The server's answer: the samples of the seconds before ``end_s``, as JSON that is not decoded.

        Servers before version 3 include a sample at the start. Raises ``TooManySamplesError`` beside ``TrafficError``.
        """
        query = {"query": f"{selector}[{length_s}s]", "time": f"{end_s:.3f}", "timeout": f"{max(1, int(self._timeout_s) - 5)}s"}
        status, body = self._post("query", query)
        if status == 200:
            return body
        url = f"{self.address}/api/v1/query"
        message = _message_of(body)
        words = f": {escaped(message)[:_SHOWN]}" if message else ""
        if (status in (400, 422, 500, 503) and _is_too_much(message)) or status == 413:
            raise TooManySamplesError(f"{url} refuses the query (HTTP status {status}){words}")
        raise TrafficError(f"{url} answers with HTTP status {status}{words}. {_ADVICE.get(status, '')}".rstrip())

    def foreign(self, problem: str) -> TrafficError:
        """The error for an answer that is not one of Prometheus."""
        return TrafficError(f"{self.address} does not answer as Prometheus does: {problem}. Check the address and its path.")

    def close(self) -> None:
        """Give the connections back."""
        self._pool.clear()

    def _post(self, path: str, fields: Mapping[str, str]) -> tuple[int, bytes]:
        form = urllib.parse.urlencode(fields).encode("ascii")
        headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", path, body=form, headers=headers)

    def _send(self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body; repeated while the server is busy or cuts the connection."""
        from urllib3.exceptions import HTTPError, MaxRetryError

        url = f"{self.address}/api/v1/{path}"
        retries = self._retries
        while True:
            try:
                response, answer = self._try(method, url, headers=headers, body=body)
            except (HTTPError, OSError) as error:
                try:
                    retries = retries.increment(method, url, error=error if isinstance(error, HTTPError) else None)
                except HTTPError as last:
                    raise TrafficError(f"{url} does not answer: {escaped(str(_cause(last)))[:_SHOWN]}") from error
                self._pause(url, retries)
                continue
            log_event(_log, "queried Prometheus", path=path, status=response.status, bytes=len(answer))
            hopeless = response.status != 429 and _is_too_much(_message_of(answer))
            if hopeless or response.status not in _PASSING:
                return response.status, answer
            try:
                retries = retries.increment(method, url, response=response)
            except MaxRetryError:
                return response.status, answer
            self._pause(url, retries, response)

    def _try(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[urllib3.BaseHTTPResponse, bytes]:
        """One request. Raises ``TrafficError`` where another one ends in the same way, else what urllib3 raises."""
        from urllib3.exceptions import ReadTimeoutError, SSLError

        deadline = time.monotonic() + self._timeout_s * _DEADLINE

        def send() -> urllib3.BaseHTTPResponse:
            return self._pool.request(
                method, url, body=body, headers=dict(headers), retries=False, preload_content=False, timeout=self._timeout
            )

        try:
            response = request_until(deadline, send)
            try:
                answer = self._body(response, deadline)
            except BaseException:
                response.close()
                raise
            response.release_conn()
        except LateAnswerError as late:
            seconds = f"{self._timeout_s * _DEADLINE:g} s"
            if late.size >= _SLOW_BYTES:
                raise TooManySamplesError(f"{url} needs more than {seconds} for its answer") from late
            raise TrafficError(f"{url} answers too slowly: {late.size:,} bytes in {seconds}") from late
        except (PackedAnswerError, zlib.error) as error:
            raise self.foreign(escaped(str(error))) from error
        except ReadTimeoutError as error:
            raise TooManySamplesError(f"{url} does not answer within {self._timeout_s:g} s") from error
        except SSLError as error:
            # A certificate does not become another one.
            reason = escaped(str(_cause(error)))[:_SHOWN]
            raise TrafficError(f"{url} does not answer: {reason}. Check tls_config in the file of --http-config") from error
        return response, answer

    def _body(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        blocks, size = [], 0
        for block in blocks_until(deadline, response):
            blocks.append(block)
            size += len(block)
            if size > self._most_bytes:
                raise TooManySamplesError(f"{self.address} answers with more than {self._most_bytes >> 20:,} MiB")
        return b"".join(blocks)

    def _pause(self, url: str, retries: urllib3.Retry, response: urllib3.BaseHTTPResponse | None = None) -> None:
        """Wait as long as the server asks for, up to a minute, else as long as the tries so far suggest."""
        asked = _retry_after(response) if response is not None else None
        seconds = min(retries.get_backoff_time() if asked is None else asked, _LONGEST_WAIT_S)
        log_event(_log, "waits before the next try", level=logging.INFO, address=self.address, seconds=seconds)
        if self._on_wait is not None and seconds >= _WORTH_A_LINE_S:
            why = f"answers with HTTP status {response.status}" if response is not None else "does not answer"
            wish = f" and asks for a pause of {duration(asked)}" if asked is not None else ""
            self._on_wait(f"{url} {why}{wish}: trying again in {duration(seconds)}")
        self._sleep(max(0.0, seconds))


def _retry_after(response: urllib3.BaseHTTPResponse) -> float | None:
    """Seconds that the server asks for; ``None``: it asks for none, or in words that are not a number or a time."""
    wish = response.headers.get("Retry-After", "").strip()
    if wish.isascii() and wish.isdigit() and len(wish) < _LONGEST_NUMBER:
        return float(wish)
    try:
        return max(0.0, parsedate_to_datetime(wish).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _cause(error: Exception) -> object:
    return getattr(error, "reason", None) or error


def _message_of(body: bytes) -> str:
    """The error that a Prometheus document or a plain text states."""
    if len(body) > _LONGEST_MESSAGE:
        return ""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = document.get("error") if isinstance(document, dict) else None
    return message if isinstance(message, str) else ""


def _is_too_much(message: str) -> bool:
    return any(words in message for words in _TOO_MUCH)


def _is_loopback(address: str) -> bool:
    host = urllib.parse.urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
