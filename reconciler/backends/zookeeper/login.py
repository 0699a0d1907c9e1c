"""kazoo's connection with SASL, and a thread that reports its errors instead of a traceback.

Kerberos is the exchange that brokers take, too. The other login is the client's side of SASL DIGEST-MD5 (RFC 2831), quality of
protection ``auth``: what ZooKeeper's servers offer. kazoo would log in with an unmaintained library, which takes only
passwords in ASCII. The digest protects a password from who listens, not well by today's measure: over untrusted networks TLS has
to.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL
from kazoo.protocol.states import KeeperState

from reconciler.backends.security.logins import BearerTokens, BrokerLogin, ExchangeLogin, SaslLogin
from reconciler.errors import AuthenticationError, MissingDependencyError
from reconciler.logs import log_event

if TYPE_CHECKING:
    from kazoo.client import KazooClient


_DIRECTIVE: Final = re.compile(rb'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,\s]*))\s*(?:,|$)', re.DOTALL)
_COUNT: Final = b"00000001"

_log: Final = logging.getLogger(__name__)
_URI: Final = "zookeeper/zk-sasl-md5"
"""Servers take no other, whatever they are called."""


class DigestError(ValueError):
    """The server does not do what the mechanism asks of it; the text states what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestAnswer:
    """``token`` is for the server; ``expected`` is how it proves that it knows the password too."""

    token: bytes = field(repr=False)
    expected: bytes = field(repr=False)

    def check(self, proof: bytes) -> None:
        """Raise ``DigestError`` when the server's last token proves nothing."""
        if not hmac.compare_digest(_directives(proof).get("rspauth", b""), self.expected):
            raise DigestError("the server does not prove that it knows the password")


def digest_answer(challenge: bytes, *, username: str, password: str, uri: str, cnonce: str) -> DigestAnswer:
    """The answer to the server's first token. ``uri``: ``service/host``; ``cnonce``: a fresh random text. Raises DigestError."""
    offered = _directives(challenge)
    if "nonce" not in offered or b"md5-sess" not in offered.get("algorithm", b""):
        raise DigestError("the server does not begin a login with DIGEST-MD5")
    if b"auth" not in [offer.strip() for offer in offered.get("qop", b"auth").split(b",")]:
        raise DigestError("the server insists on encrypting the connection with DIGEST-MD5")
    realm, nonce = offered.get("realm", b""), offered["nonce"]
    # A server without UTF-8 has Latin-1; and what Latin-1 can say is hashed as such by one with UTF-8 too.
    encoding = "utf-8" if offered.get("charset", b"").lower() == b"utf-8" else "latin-1"
    secret = b":".join((_hash_input(username), _hash_input(realm.decode(encoding)), _hash_input(password)))
    a1 = b":".join((_md5(secret).digest(), nonce, cnonce.encode("ascii")))

    def response(method: bytes) -> bytes:
        a2 = _md5(method + b":" + uri.encode()).hexdigest().encode()
        parts = (_md5(a1).hexdigest().encode(), nonce, _COUNT, cnonce.encode("ascii"), b"auth", a2)
        return _md5(b":".join(parts)).hexdigest().encode()

    directives = (
        *((b"charset=utf-8",) if encoding == "utf-8" else ()),
        b"username=" + _quote(username.encode(encoding)),
        b"realm=" + _quote(realm),
        b"nonce=" + _quote(nonce),
        b"nc=" + _COUNT,
        b"cnonce=" + _quote(cnonce.encode("ascii")),
        b"digest-uri=" + _quote(uri.encode()),
        b"response=" + response(b"AUTHENTICATE"),
        b"qop=auth",
    )
    return DigestAnswer(token=b",".join(directives), expected=response(b""))


def _directives(token: bytes) -> dict[str, bytes]:
    directives: dict[str, bytes] = {}
    at = 0
    while at < len(token):
        match = _DIRECTIVE.match(token, at)
        if match is None:
            raise DigestError("the token of the server cannot be read")
        value = match[3] if match[2] is None else re.sub(rb"\\(.)", rb"\1", match[2], flags=re.DOTALL)
        directives[match[1].decode("ascii").lower()] = value
        at = match.end()
    return directives


def _hash_input(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _quote(value: bytes) -> bytes:
    return b'"' + re.sub(rb'(["\\])', rb"\\\1", value) + b'"'


def _md5(data: bytes) -> hashlib._Hash:
    # The mechanism's choice; the flag lets it work where the system forbids MD5 for other uses.
    return hashlib.md5(data, usedforsecurity=False)


class LoginConnection(ConnectionHandler):  # type: ignore[misc]  # the library has no types
    """Put in place of a client's own.

    ``answer_seconds``: for each step of a login. ``waiting``: how many seconds a request waits for a broken connection.
    """

    def __init__(
        self, client: KazooClient, *, login: BrokerLogin | None, answer_seconds: float, waiting: float, logger: logging.Logger
    ) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=logger, sasl_options=None if login is None else {})  # noqa: SLF001 - what the client itself does
        self._login = login
        self._answer_seconds = answer_seconds
        self._waiting = waiting
        self._is_connected = False
        self._lost_at = time.monotonic()
        self.refusal: str | None = None
        """Why the last login failed, in words."""

    def zk_loop(self) -> None:
        """Keep the connection up until it is closed, or cannot be."""
        try:
            super().zk_loop()
        except Exception as error:  # noqa: BLE001 - the thread has no caller that could catch what ended it; requests get an error anyway
            self.refusal = self.refusal or f"the server sends an answer that ZooKeeper never sends ({type(error).__name__})"

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        timeouts = super()._connect(host, hostip, port)
        self._is_connected = True
        return timeouts

    def _connect_loop(self, retry: Any) -> Any:
        """One round over all servers; it lasts as long as the connection to one of them."""
        try:
            return super()._connect_loop(retry)
        finally:
            if self._is_connected:
                self._is_connected, self._lost_at = False, time.monotonic()
            elif time.monotonic() - self._lost_at > self._waiting:
                # Kazoo lets what was asked without a connection wait for ever.
                self.client._notify_pending(KeeperState.CONNECTING)  # noqa: SLF001 - it has no other way to end that

    def _authenticate_with_sasl(self, host: str, _timeout: float) -> None:
        """Log in. Raises ``AuthFailedError``, after which no further connection is tried."""
        if self._login is None:
            return
        try:
            opened = self._login.opened(host)
            if isinstance(opened, SaslLogin):
                self._log_in_with_digest(opened)
            elif not isinstance(opened, BearerTokens):  # no line of ZooKeeper's makes these
                self._log_in_with_tickets(opened, host)
            log_event(_log, "login accepted", level=logging.INFO, mechanism=self._login.mechanism)
        except (AuthenticationError, MissingDependencyError) as error:
            self._refuse(str(error))
        except DigestError as error:
            self._refuse(f"the server's part of the login cannot be used: {error}")
        except ConnectionDropped:
            self._refuse("the server closed the connection at the login")
        except self.handler.timeout_exception:
            self._refuse("the server does not answer a login. It may have none with SASL")

    def _log_in_with_digest(self, login: SaslLogin) -> None:
        challenge = self._exchange(b"", xid=1)
        if not challenge:
            self._refuse("the server offers none")
        answer = digest_answer(
            challenge, username=login.username, password=login.password, uri=_URI, cnonce=secrets.token_urlsafe(24)
        )
        answer.check(self._exchange(answer.token, xid=2))

    def _log_in_with_tickets(self, login: ExchangeLogin, host: str) -> None:
        exchange = login.begin(host)
        answer: bytes | None = None
        for xid in itertools.count(1):
            answer = self._exchange(exchange.respond(answer), xid=xid)
            if exchange.is_complete:
                return

    def _exchange(self, token: bytes, *, xid: int) -> bytes:
        self._submit(SASL(token), self._answer_seconds, xid)
        header, buffer, offset = self._read_header(self._answer_seconds)
        if header.xid != xid:
            raise DigestError("the server answers another request")
        if header.err:
            is_password = xid > 1 and isinstance(self._login, SaslLogin)
            self._refuse("the user or the password is wrong" if is_password else f"error {header.err}")
        answer: tuple[Any, int] = SASL.deserialize(buffer, offset)
        return bytes(answer[0] or b"")

    def _refuse(self, why: str) -> None:
        self.refusal = why
        mechanism = None if self._login is None else self._login.mechanism
        log_event(_log, "login refused", level=logging.INFO, mechanism=mechanism, reason=why)
        raise AuthFailedError(why)
