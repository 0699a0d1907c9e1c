"""SASL and sockets of kafka-python: which mechanisms it runs itself, how it runs those of this tool, and two of its faults.

It picks a mechanism by its name. Under the names GSSAPI and AWS_MSK_IAM stands a choice: logins of this tool go to the classes
here, all others to the library's own, for the process may use the library for itself.

The library leaves the socket of a failed connection to the garbage collector; here it is closed. When an answer and the end of
the connection arrive together, the library drops the answer, such as the refusal of a login that brokers send right before they
close. Here the end shows only after the answer was read.
"""

from __future__ import annotations

import ssl
from socket import socket as Socket
from typing import Any, Final

import kafka.errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from reconciler.backends.broker.settings import BrokerLogin, SaslLogin
from reconciler.backends.security.logins import BearerTokens, ExchangeLogin, SaslExchange
from reconciler.backends.security.tls import Tls, tls_context
from reconciler.errors import ReconcilerError

_CARRIER: Final = "sasl_oauth_token_provider"
"""The one setting of the library through which an object can reach a mechanism."""


PROXY_URL: Final = "kafka-quotas-direct://"
"""A proxy setting that picks ``ClosingSocket``: the library's own way of choosing the class of its sockets. No proxy is used."""
_CHUNK: Final = 256 * 1024
"""Bytes read at a time; the library asks for 4 KiB, and takes what it gets."""


class LoginStoppedError(kafka_errors.KafkaError):  # type: ignore[misc]  # the library has no types here
    """A login that ended on this side, before a broker could judge it.

    Not one of the library's errors about logins: it would remember those for ever, and a ticket can be renewed.
    """

    def __init__(self, reason: ReconcilerError) -> None:
        super().__init__(str(reason))
        self._kind, self._text = type(reason), str(reason)

    def reason(self) -> ReconcilerError:
        """The error for the user: a new one, for two errors that are each other's cause keep Python busy for ever."""
        return self._kind(self._text)


class _Begun:
    """Carries the login through the library's settings."""

    def __init__(self, login: ExchangeLogin) -> None:
        self.login = login


class _ExchangeMechanism:
    """Runs an exchange of this tool on a connection of the library."""

    def __init__(self, login: ExchangeLogin, host: str) -> None:
        try:
            self._exchange: SaslExchange = login.begin(host)
            self._next = self._exchange.respond(None)
        except ReconcilerError as error:
            raise LoginStoppedError(error) from error
        self._name = login.mechanism
        self._is_done = False

    def auth_bytes(self) -> bytes:
        """The next message to the broker."""
        return self._next

    def receive(self, auth_bytes: bytes) -> None:
        """Take the broker's message; the one after the client's last has nothing to answer."""
        if self._exchange.is_complete:
            self._is_done = True
            return
        try:
            self._next = self._exchange.respond(auth_bytes)
        except ReconcilerError as error:
            raise LoginStoppedError(error) from error

    def is_done(self) -> bool:
        """Whether nothing is left to exchange."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """The same: a broker refuses a login with an error of its own."""
        return self._is_done

    def auth_details(self) -> str:
        """Return a text for the library's log."""
        return f"authenticated with {self._name}"


@AbstractTokenProvider.register
class _Tokens:
    """Gives the library tokens, and Kafka's extensions of a login."""

    def __init__(self, tokens: BearerTokens) -> None:
        self._tokens = tokens

    def token(self) -> str:
        """The current one. Raises ``LoginStoppedError``."""
        try:
            return self._tokens.token()
        except ReconcilerError as error:
            raise LoginStoppedError(error) from error

    def extensions(self) -> dict[str, str]:
        """Names and values that go with the token."""
        return dict(self._tokens.extensions)


def login_settings(login: BrokerLogin, *, host: str) -> dict[str, Any]:
    """The library's settings for a login; ``host`` is that of a bootstrap server."""
    opened = login.opened(host)
    if isinstance(opened, SaslLogin):
        return {
            "sasl_mechanism": opened.mechanism,
            "sasl_plain_username": opened.username,
            "sasl_plain_password": opened.password,
        }
    if isinstance(opened, BearerTokens):
        return {"sasl_mechanism": login.mechanism, _CARRIER: _Tokens(opened)}
    _register(opened.mechanism)
    return {"sasl_mechanism": opened.mechanism, _CARRIER: _Begun(opened)}


def _register(name: str) -> None:
    known = SASL_MECHANISMS[name]
    if isinstance(known, _Choice):
        return
    register_sasl_mechanism(name, _Choice(known), overwrite=True)


class _Choice:
    def __init__(self, other: Any) -> None:
        self._other = other

    def __call__(self, *, host: str, **settings: Any) -> Any:
        carrier = settings.get(_CARRIER)
        if isinstance(carrier, _Begun):
            return _ExchangeMechanism(carrier.login, host)
        return self._other(host=host, **settings)


class _EndAfterData(Socket):
    """Shows the end of a connection only in a round of reading that had no data before it."""

    _data_before = False

    def recv(self, _size: int = 0, flags: int = 0, /) -> bytes:
        data: bytes = b""
        try:
            data = super().recv(_CHUNK, flags)
        except ConnectionError:
            if not self._data_before:
                raise
        if not data and self._data_before:
            self._data_before = False
            # The library ends its round here, and comes back at once, for the socket is still readable.
            raise BlockingIOError
        self._data_before = bool(data)
        return data


class ClosingSocket(KafkaNetSocket):  # type: ignore[misc]  # the library has no types here
    """A direct connection."""

    SCHEMES = ("kafka-quotas-direct",)
    _last: Socket | None = None

    def socket(self, *arguments: Any) -> Socket:
        """Make a socket, and remember it until it is connected."""
        self._last = _EndAfterData(*arguments)
        return self._last

    async def connect(self, *arguments: Any, **options: Any) -> Socket:
        """Connect, or close the socket."""
        try:
            connected: Socket = await super().connect(*arguments, **options)
        except BaseException:
            if self._last is not None:
                self._last.close()
            raise
        return connected


class TlsSockets:
    """Makes TLS sockets of one context and can close all of them, also those that never finished a handshake."""

    def __init__(self, tls: Tls) -> None:
        made: list[ssl.SSLSocket] = []

        class Remembered(_EndAfterData, ssl.SSLSocket):
            def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of the base class
                if self not in made:
                    made.append(self)
                super().do_handshake(block)

        self._made = made
        self.context = tls_context(tls)
        self.context.sslsocket_class = Remembered

    def close(self) -> None:
        """Close them; safe to call twice."""
        for made in self._made:
            made.close()
