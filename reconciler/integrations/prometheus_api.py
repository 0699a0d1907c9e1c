"""Raw samples of a Prometheus server, or of one that answers like it (Mimir, Thanos, VictoriaMetrics), by its HTTP API.

Samples come from instant queries with a range selector, which return what was scraped; range queries interpolate by step.
Source: Prometheus documentation, "HTTP API" (``/api/v1/query``, ``matrix`` results).
"""

from __future__ import annotations

import base64
import json
import logging
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import MissingDependencyError, TrafficError, UsageError
from reconciler.logs import log_event
from reconciler.model import escaped

if TYPE_CHECKING:
    import urllib3

SCHEME_PREFIX: Final = "prometheus+"
"""``--traffic prometheus+https://HOST/PATH`` names a server."""
_TRIES: Final = 5
_PASSING: Final = (429, 500, 502, 503, 504)
_SHOWN: Final = 300
_MOST_BYTES: Final = 1 << 30
_INSTALL: Final = "pip install 'kafka-quota-reconciler[traffic]'"
_ADVICE: Final = {
    401: "The server refuses the login. Check --http-config.",
    403: "The login may not read these metrics. Check --http-config.",
    404: "This address has no Prometheus API. Check the path.",
}
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLogin:
    """What requests carry beside the query. Values of headers are secrets: they are in no message and no log."""

    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSeries:
    """The samples of one series: ``(seconds since 1970, value)``, oldest first."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


def basic_auth(user: str, password: str) -> str:
    """The value of an ``Authorization`` header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


class TooManySamplesError(TrafficError):
    """The server limits samples per query, and this one has more: ask for a shorter time."""


class PrometheusApi:
    """Queries of one server. Every method raises ``TrafficError`` for a server that does not answer as Prometheus does."""

    def __init__(self, address: str, login: HttpLogin | None = None, *, timeout_s: float = 60.0) -> None:
        """``address``: ``http(s)://HOST[:PORT][/PATH]``. Raises ``UsageError`` for another one."""
        try:
            import urllib3
        except ImportError as error:
            raise MissingDependencyError(f"Reading Prometheus needs urllib3, which is not installed: {_INSTALL}") from error
        self.address = _checked_address(address)
        login = login or HttpLogin()
        self._headers = dict(login.headers)
        retries = urllib3.Retry(
            total=_TRIES,
            backoff_factor=0.5,
            status_forcelist=_PASSING,
            allowed_methods=None,
            raise_on_status=False,
            redirect=False,
            respect_retry_after_header=True,
        )
        self._pool: urllib3.PoolManager = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=10.0, read=timeout_s),
            retries=retries,
            ca_certs=str(login.ca_file) if login.ca_file else None,
            cert_file=str(login.cert_file) if login.cert_file else None,
            key_file=str(login.key_file) if login.key_file else None,
        )

    def samples(self, selector: str, *, end_s: float, length_s: int) -> tuple[SampledSeries, ...]:
        """The samples later than ``end_s - length_s`` and not later than ``end_s``.

        Raises ``TooManySamplesError`` beside ``TrafficError``.
        """
        data = self._get("query", {"query": f"{selector}[{length_s}s]", "time": f"{end_s:.3f}"})
        if data.get("resultType") != "matrix":
            raise self._foreign("the result is not a matrix")
        start_s = end_s - length_s
        try:
            return tuple(
                SampledSeries(
                    labels={str(name): str(value) for name, value in series["metric"].items()},
                    # Servers before version 3 include the sample at the start, which belongs to the page before.
                    samples=tuple((float(at), float(value)) for at, value in series["values"] if float(at) > start_s),
                )
                for series in data["result"]
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._foreign(f"a series cannot be read ({type(error).__name__})") from error

    def close(self) -> None:
        """Give the connections back."""
        self._pool.clear()

    def _get(self, path: str, fields: Mapping[str, str]) -> dict[str, Any]:
        from urllib3.exceptions import HTTPError

        url = f"{self.address}/api/v1/{path}"
        try:
            response = self._pool.request("POST", url, fields=dict(fields), headers=self._headers, encode_multipart=False)
        except (HTTPError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise TrafficError(f"{url} does not answer: {escaped(str(reason))[:_SHOWN]}") from error
        body = response.data
        log_event(_log, "queried Prometheus", path=path, status=response.status, bytes=len(body))
        try:
            document = json.loads(body) if len(body) <= _MOST_BYTES else None
        except (ValueError, RecursionError):
            document = None
        message = document.get("error") if isinstance(document, dict) else None
        if response.status == 422 and "too many samples" in str(message):
            raise TooManySamplesError(f"{url} refuses the query: {escaped(str(message))[:_SHOWN]}")
        if response.status != 200:
            advice = _ADVICE.get(response.status, "")
            words = f": {escaped(str(message))[:_SHOWN]}" if message else ""
            raise TrafficError(f"{url} answers with HTTP status {response.status}{words}. {advice}".rstrip())
        if not isinstance(document, dict) or document.get("status") != "success" or not isinstance(document.get("data"), dict):
            raise self._foreign("the answer is not a Prometheus document")
        data: dict[str, Any] = document["data"]
        return data

    def _foreign(self, problem: str) -> TrafficError:
        return TrafficError(f"{self.address} does not answer as Prometheus does: {problem}. Check the address and its path.")


def _checked_address(text: str) -> str:
    try:
        parts = urllib.parse.urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or not text.isascii() or not text.isprintable():
        raise UsageError(f"A Prometheus server is prometheus+http(s)://HOST[:PORT][/PATH], not {escaped(text)!r}")
    if parts.username is not None or parts.password is not None:
        raise UsageError("The address of a Prometheus server has no login in it. Put the login into the file of --http-config")
    return text.rstrip("/")
