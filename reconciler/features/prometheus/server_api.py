"""Raw samples of a Prometheus server, or of one that answers like it (Mimir, Thanos, VictoriaMetrics), by its HTTP API.

Samples come from instant queries with a range selector, which return what was scraped; range queries interpolate by step.
Source: Prometheus documentation, "HTTP API" (``/api/v1/query``).
"""

from __future__ import annotations

import json
import logging
import time
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from reconciler.errors import TrafficError, UsageError
from reconciler.features.prometheus.http import HttpLogin, checked_address
from reconciler.http import LateAnswerError, LongAnswerError, NoAnswerError, PackedAnswerError, answering, joined
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.text import duration

if TYPE_CHECKING:
    import urllib3

_FORM: Final = "prometheus+http(s)://HOST[:PORT][/PATH]"
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_PAUSES_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Before the second try and each one after it."""
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
_ADVICE: Final = {
    401: "The server refuses the login. Check --http-config.",
    403: "The login may not read these metrics. Check --http-config.",
    404: "This address has no Prometheus API. Check the path.",
    429: "The server limits how often it is asked. Try again later.",
}
_REDIRECTED: Final = "The server redirects, perhaps to a login page. Check the address and --http-config."
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

        parts = checked_address(address, "Prometheus server", _FORM)
        if parts.query:
            raise UsageError(f"A Prometheus server is {_FORM}, not {escaped(address)!r}")
        self.address = address.rstrip("/")
        self._url = f"{self.address}/api/v1/query"
        self._headers = {**login.headers, "Content-Type": "application/x-www-form-urlencoded"}
        if parts.hostname not in _LOOPBACK:
            # Compression costs the server more time than a network of 1 GB/s does.
            self._headers["Accept-Encoding"] = "gzip"
        self._timeout_s, self._most_bytes = timeout_s, most_bytes
        self._on_wait, self._sleep = on_wait, sleep
        self._timeout = urllib3.Timeout(connect=10.0, read=timeout_s)

    def range_samples(self, selector: str, *, end_s: float, length_s: int) -> bytes:
        """The server's answer: the samples of the seconds before ``end_s``, as JSON that is not decoded.

        Servers before version 3 include a sample at the start. Raises ``TooManySamplesError`` beside ``TrafficError``.
        """
        query = {"query": f"{selector}[{length_s}s]", "time": f"{end_s:.3f}", "timeout": f"{max(1, int(self._timeout_s) - 5)}s"}
        form = urllib.parse.urlencode(query).encode("ascii")
        for pause_s in (*_PAUSES_S, None):
            try:
                response, body = self._try(form)
            except NoAnswerError as error:
                if pause_s is None:
                    raise TrafficError(f"{self._url} does not answer: {escaped(str(error))[:_SHOWN]}") from error
                self._pause(pause_s, "does not answer")
                continue
            status, message = response.status, _message_of(body)
            log_event(_log, "queried Prometheus", status=status, bytes=len(body))
            if status == 200:
                return body
            is_too_much = any(words in message for words in _TOO_MUCH)
            if pause_s is None or status not in _PASSING or (is_too_much and status != 429):
                break
            self._pause(pause_s, f"answers with HTTP status {status}", asked=_retry_after(response))
        words = f": {escaped(message)[:_SHOWN]}" if message else ""
        if (status in (400, 422, 500, 503) and is_too_much) or status == 413:
            raise TooManySamplesError(f"{self._url} refuses the query (HTTP status {status}){words}")
        advice = _REDIRECTED if 300 <= status < 400 else _ADVICE.get(status, "")
        raise TrafficError(f"{self._url} answers with HTTP status {status}{words}. {advice}".rstrip())

    def foreign(self, problem: str) -> TrafficError:
        """The error for an answer that is not one of Prometheus."""
        return TrafficError(f"{self.address} does not answer as Prometheus does: {problem}. Check the address and its path.")

    def close(self) -> None:
        """Give the connections back."""
        self._pool.clear()

    def _try(self, form: bytes) -> tuple[urllib3.BaseHTTPResponse, bytes]:
        """One request. Raises ``TrafficError`` where another one ends in the same way, else ``NoAnswerError``."""
        seconds = self._timeout_s * _DEADLINE
        exchange = answering(
            self._pool, "POST", self._url, seconds=seconds, body=form, headers=self._headers, timeout=self._timeout
        )
        try:
            with exchange as (response, blocks):
                return response, joined(blocks, self._most_bytes)
        except LateAnswerError as late:
            if not late.size:
                raise TooManySamplesError(f"{self._url} does not answer within {self._timeout_s:g} s") from late
            if late.size >= _SLOW_BYTES:
                raise TooManySamplesError(f"{self._url} needs more than {seconds:g} s for its answer") from late
            raise TrafficError(f"{self._url} answers too slowly: {late.size:,} bytes in {seconds:g} s") from late
        except LongAnswerError as error:
            raise TooManySamplesError(f"{self.address} answers with more than {self._most_bytes >> 20:,} MiB") from error
        except PackedAnswerError as error:
            raise self.foreign(str(error)) from error
        except NoAnswerError as error:
            if not error.final:
                raise
            # A certificate does not become another one.
            reason = escaped(str(error))[:_SHOWN]
            msg = f"{self._url} does not answer: {reason}. Check tls_config in the file of --http-config"
            raise TrafficError(msg) from error

    def _pause(self, pause_s: float, why: str, *, asked: float | None = None) -> None:
        """Wait as long as the server asks for, up to a minute, else as long as the tries so far suggest."""
        seconds = min(pause_s if asked is None else asked, _LONGEST_WAIT_S)
        log_event(_log, "waits before the next try", level=logging.INFO, address=self.address, seconds=seconds)
        if self._on_wait is not None and seconds >= _WORTH_A_LINE_S:
            wish = f" and asks for a pause of {duration(asked)}" if asked is not None else ""
            self._on_wait(f"{self._url} {why}{wish}: trying again in {duration(seconds)}")
        self._sleep(seconds)


def _retry_after(response: urllib3.BaseHTTPResponse) -> float | None:
    """Seconds that the server asks for; ``None``: it asks for none, or in words that are not a number or a time."""
    from urllib3 import Retry
    from urllib3.exceptions import InvalidHeader

    try:
        return Retry().get_retry_after(response)
    except (InvalidHeader, ValueError, OverflowError):
        return None


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
