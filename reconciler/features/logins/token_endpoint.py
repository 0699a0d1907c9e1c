"""Tokens from an endpoint of an identity provider: fetched once for all connections, and again before they expire.

No redirect is followed, for the request has the client's secret. No message repeats a secret, a token or an assertion.
"""

from __future__ import annotations

import base64
import contextlib
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
from concurrent.futures import Future
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from reconciler.backends import tls_context
from reconciler.errors import AuthenticationError
from reconciler.features.logins.tokens import ClientSecret, TokenEndpoint, unverified_claims
from reconciler.logs import log_event
from reconciler.model import escaped

_log: Final = logging.getLogger(__name__)

_REFRESH_AT: Final = 0.8
"""The share of a token's lifetime after which the next one is fetched, as in Kafka; brokers ask again at 0.85 to 0.95."""
_UNKNOWN_LIFETIME_S: Final = 60.0
_LONGEST_LIFETIME_S: Final = 86_400.0
"""A token that claims to be valid for longer is fetched again after this time all the same."""
_ATTEMPTS: Final = 3
_FIRST_PAUSE_S: Final = 0.1
_MOST_BYTES: Final = 1024 * 1024
_LONGEST_REASON: Final = 300
_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


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


def _fetch(endpoint: TokenEndpoint, now: float) -> tuple[str, float]:
    """A new token, and for how many seconds it is valid."""
    pause = _FIRST_PAUSE_S
    for _ in range(_ATTEMPTS - 1):
        try:
            return _fetch_once(endpoint, now)
        except _PassingError:
            time.sleep(pause)
            pause *= 2
    return _fetch_once(endpoint, now)


class _PassingError(AuthenticationError):
    """A failure that may be gone at the next attempt."""


def _fetch_once(endpoint: TokenEndpoint, now: float) -> tuple[str, float]:
    headers, form, secrets = _request_parts(endpoint)
    if endpoint.scope is not None:
        form["scope"] = endpoint.scope
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=tls_context(endpoint.tls)), _NoRedirect())
    opener.addheaders = list(headers.items())
    whole_seconds = endpoint.connect_seconds + endpoint.read_seconds
    try:
        answer = _answer_within(whole_seconds, lambda: _post(opener, endpoint, urlencode(form).encode()))
    except _LateAnswerError:
        raise _failed(endpoint, f"the answer of the endpoint was not complete after {whole_seconds:g} s") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _unreachable(endpoint, error) from None
    if answer.status != HTTPStatus.OK:
        raise _refusal(endpoint, answer, secrets)
    return _token_in(endpoint, answer.body, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The first bytes of an answer, and its status; of a good one the status is 200."""

    status: int
    body: bytes


class _LateAnswerError(Exception):
    """The deadline passed before the answer was whole."""


def _post(opener: urllib.request.OpenerDirector, endpoint: TokenEndpoint, form: bytes) -> _Answer:
    try:
        # One timeout for each wait of the socket, as the library has it: the longer of both.
        with opener.open(endpoint.url, form, timeout=max(endpoint.connect_seconds, endpoint.read_seconds)) as answer:
            return _Answer(status=HTTPStatus.OK, body=answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            return _Answer(status=error.code, body=error.read(_MOST_BYTES))


def _answer_within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """The answer, or ``_LateAnswerError``; raises what ``ask`` raises.

    A socket's timeout begins anew with each byte. So a server that drips is left to a thread that keeps nothing alive.
    """
    future: Future[_Answer] = Future()

    def run() -> None:
        try:
            future.set_result(ask())
        except (OSError, ValueError, http.client.HTTPException) as error:
            future.set_exception(error)
        finally:
            if not future.done():
                future.set_exception(RuntimeError("the request ended with an error of its own"))

    threading.Thread(target=run, name="token request", daemon=True).start()
    with contextlib.suppress(TimeoutError):
        return future.result(timeout=seconds)
    if future.done():
        return future.result()  # a timeout of the socket, not this one
    raise _LateAnswerError


def _request_parts(endpoint: TokenEndpoint) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Headers, form, and what no message may repeat."""
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded", "Cache-Control": "no-cache"}
    proof = endpoint.proof
    if isinstance(proof, ClientSecret):
        pair = [quote(text, safe="") if proof.url_encoded else text for text in (proof.client_id, proof.secret)]
        basic = base64.b64encode(":".join(pair).encode()).decode("ascii")
        return headers | {"Authorization": f"Basic {basic}"}, {"grant_type": "client_credentials"}, (proof.secret, basic)
    try:
        assertion = Path(proof.path).read_text("ascii").strip()
    except (OSError, ValueError) as error:
        why = (error.strerror or "not a usable file") if isinstance(error, OSError) else str(error)
        raise AuthenticationError(f"The assertion in {escaped(proof.path)} cannot be read: {why}") from None
    form = {"grant_type": "client_credentials", "client_assertion_type": _ASSERTION_TYPE, "client_assertion": assertion}
    return headers, form | ({"client_id": endpoint.client_id} if endpoint.client_id is not None else {}), (assertion,)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object) -> None:
        """Follow none: the answer becomes an error."""


def _token_in(endpoint: TokenEndpoint, body: bytes, now: float) -> tuple[str, float]:
    answer = _json_in(body)
    if not isinstance(answer, dict):
        raise _failed(endpoint, "the endpoint does not answer with a JSON object")
    token = answer.get("access_token") or answer.get("id_token")
    if not isinstance(token, str) or not token.isascii() or any(char <= " " for char in token):
        raise _failed(endpoint, "the answer of the endpoint has no token")
    return token, _lifetime(answer, token, now)


def _lifetime(answer: Mapping[str, Any], token: str, now: float) -> float:
    end = _number(unverified_claims(token).get("exp"))
    if end is not None:
        return min(max(0.0, end - now), _LONGEST_LIFETIME_S)
    seconds = _number(answer.get("expires_in"))
    return min(seconds, _LONGEST_LIFETIME_S) if seconds is not None and seconds > 0 else _UNKNOWN_LIFETIME_S


def _number(value: object) -> float | None:
    """A number of an answer; ``None`` for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return None if math.isnan(number) else number


def _json_in(body: bytes) -> object:
    """The document of an answer; ``None`` where it is not JSON, or too deep to be read."""
    try:
        document: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document


def _refusal(endpoint: TokenEndpoint, answer: _Answer, secrets: tuple[str, ...]) -> AuthenticationError:
    reason = _words_of(answer.body)
    for secret in secrets:
        reason = reason.replace(secret, "...")
    words = f" ({escaped(reason[:_LONGEST_REASON])})" if reason else ""
    is_passing = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in _PASSING
    why = f"the endpoint answers with HTTP status {answer.status}{words}"
    if answer.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        why += ". Check the client_id, its secret or assertion, and the scope"
    return _failed(endpoint, why, is_passing=is_passing)


def _words_of(body: bytes) -> str:
    """The members that RFC 6749 defines for errors. The rest of an answer may be anything."""
    answer = _json_in(body)
    if not isinstance(answer, dict):
        return ""
    words = (answer.get(name) for name in ("error", "error_description"))
    return ": ".join(word for word in words if isinstance(word, str))


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
        return _failed(endpoint, "the endpoint does not answer in time", is_passing=False)
    reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else "the endpoint breaks off the connection"
    return _failed(endpoint, reason.lower(), is_passing=True)


def _failed(endpoint: TokenEndpoint, why: str, *, is_passing: bool = False) -> AuthenticationError:
    kind = _PassingError if is_passing else AuthenticationError
    return kind(f"No token from {escaped(endpoint.url)}: {why}")
