"""Tokens from an endpoint of an identity provider: fetched once for all connections, and again before they expire.

No redirect is followed, for the request has the client's secret. No message repeats a secret or a token.
"""

from __future__ import annotations

import http.client
import json
import logging
import math
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from reconciler.backends import tls_context
from reconciler.errors import AuthenticationError
from reconciler.features.logins.tokens import TokenEndpoint, unverified_claims
from reconciler.http import LateAnswerError, result_until
from reconciler.logs import log_event
from reconciler.model import escaped

_log: Final = logging.getLogger(__name__)

_REFRESH_AT: Final = 0.8
"""The share of a token's lifetime after which the next one is fetched, as in Kafka; brokers ask again at 0.85 to 0.95."""
_UNKNOWN_LIFETIME_S: Final = 60.0
_LONGEST_LIFETIME_S: Final = 86_400.0
"""A token that claims to be valid for longer is fetched again after this time all the same."""
_PAUSES_S: Final = (0.1, 0.2)
"""Before the second and the third attempt."""
_MOST_BYTES: Final = 1024 * 1024
_LONGEST_REASON: Final = 300
_PASSING: Final = (408, 429)
_CREDENTIALS: Final = (400, 401, 403)


class EndpointTokens:
    """The current token of an endpoint. Any thread may ask."""

    def __init__(self, endpoint: TokenEndpoint, *, now: Callable[[], float] = time.time) -> None:
        self._endpoint = endpoint
        self._now = now
        self._lock = threading.Lock()
        self._token = ""
        self._refresh_at = self._expires_at = 0.0

    def token(self) -> str:
        """A token that has not expired. Raises ``AuthenticationError``.

        When the endpoint fails while the last token is still valid, it is the last token.
        """
        with self._lock:
            now = self._now()
            if now >= self._refresh_at:
                self._refresh(now)
            return self._token

    def _refresh(self, now: float) -> None:
        try:
            token, lifetime = _fetch(self._endpoint, now)
        except AuthenticationError as error:
            if not self._token or now >= self._expires_at:
                raise
            log_event(_log, "token not refreshed", level=logging.WARNING, url=self._endpoint.url, reason=str(error))
            return
        self._token, self._expires_at = token, now + lifetime
        self._refresh_at = now + lifetime * _REFRESH_AT
        log_event(_log, "token fetched", level=logging.INFO, url=self._endpoint.url, valid_seconds=round(lifetime))


class _PassingError(AuthenticationError):
    """A failure that may be gone at the next attempt."""


def _fetch(endpoint: TokenEndpoint, now: float) -> tuple[str, float]:
    """A new token, and for how many seconds it is valid."""
    for pause in _PAUSES_S:
        try:
            return _token_in(endpoint, _answer(endpoint), now)
        except _PassingError:
            time.sleep(pause)
    return _token_in(endpoint, _answer(endpoint), now)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object) -> None:
        """Follow none: the answer becomes an error."""


def _answer(endpoint: TokenEndpoint) -> object:
    """Return the document of the answer; ``None`` where it is not JSON, or too deep to be read."""
    form = {"grant_type": "client_credentials"} | ({} if endpoint.scope is None else {"scope": endpoint.scope})
    headers = {"Accept": "application/json", "Cache-Control": "no-cache", "Authorization": f"Basic {endpoint.basic}"}
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=tls_context(endpoint.tls)), _NoRedirect())
    opener.addheaders = list(headers.items())

    def ask() -> tuple[int, bytes]:
        try:
            with opener.open(endpoint.url, urlencode(form).encode(), timeout=endpoint.seconds) as answer:
                return 200, answer.read(_MOST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(_MOST_BYTES)

    try:
        status, body = result_until(time.monotonic() + endpoint.seconds, ask)
    except LateAnswerError:
        raise _failed(endpoint, f"the answer of the endpoint was not complete after {endpoint.seconds:g} s") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _unreachable(endpoint, error) from None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if status != 200:
        raise _refusal(endpoint, status, document)
    return document


def _token_in(endpoint: TokenEndpoint, answer: object, now: float) -> tuple[str, float]:
    if not isinstance(answer, dict):
        raise _failed(endpoint, "the endpoint does not answer with a JSON object")
    token = answer.get("access_token") or answer.get("id_token")
    if not isinstance(token, str) or not token.isascii() or any(char <= " " for char in token):
        raise _failed(endpoint, "the answer of the endpoint has no token")
    return token, _lifetime(answer, token, now)


def _lifetime(answer: Mapping[str, Any], token: str, now: float) -> float:
    """Compare before calculating: a number of an answer may be larger than any double."""
    end, seconds = _number(unverified_claims(token).get("exp")), _number(answer.get("expires_in"))
    if end is not None:
        return min(max(end, now), now + _LONGEST_LIFETIME_S) - now
    return min(seconds, _LONGEST_LIFETIME_S) if seconds is not None and seconds > 0 else _UNKNOWN_LIFETIME_S


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and math.isnan(value)):
        return None
    return value


def _refusal(endpoint: TokenEndpoint, status: int, document: object) -> AuthenticationError:
    """The members that RFC 6749 defines for errors are shown. The rest of an answer may be anything."""
    words = [document.get(name) for name in ("error", "error_description")] if isinstance(document, dict) else []
    reason = ": ".join(word for word in words if isinstance(word, str))
    for secret in (endpoint.secret, endpoint.basic):
        reason = reason.replace(secret, "...")
    why = f"the endpoint answers with HTTP status {status}"
    why += f" ({escaped(reason[:_LONGEST_REASON])})" if reason else ""
    if status in _CREDENTIALS:
        why += ". Check the client_id, its secret, and the scope"
    return _failed(endpoint, why, is_passing=status >= 500 or status in _PASSING)


def _unreachable(endpoint: TokenEndpoint, error: Exception) -> AuthenticationError:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _failed(
            endpoint,
            f"the endpoint's certificate is not trusted ({cause.verify_message}). For an authority of your own, "
            "write ssl.truststore.type and ssl.truststore.location into sasl.jaas.config, as options of the login module",
        )
    if isinstance(cause, ssl.SSLError):
        return _failed(endpoint, f"TLS failed ({cause.reason or 'no reason given'})")
    if isinstance(cause, TimeoutError):
        return _failed(endpoint, "the endpoint does not answer in time")
    reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else "the endpoint breaks off the connection"
    return _failed(endpoint, reason.lower(), is_passing=True)


def _failed(endpoint: TokenEndpoint, why: str, *, is_passing: bool = False) -> AuthenticationError:
    kind = _PassingError if is_passing else AuthenticationError
    return kind(f"No token from {escaped(endpoint.url)}: {why}")
