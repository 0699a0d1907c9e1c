"""kafka-python's mechanisms of SASL: which of them it runs itself, and how it runs those of this tool.

It picks a mechanism by its name. Under the names GSSAPI and AWS_MSK_IAM stands a choice: logins of this tool go to the classes
here, all others to the library's own, for the process may use the library for itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from reconciler.backends.broker.logins import BrokerLogin, SaslLogin
from reconciler.backends.broker.msk_iam import IamIdentity, IamLogin, iam_token
from reconciler.backends.broker.token_endpoint import EndpointTokens
from reconciler.backends.broker.tokens import TokenEndpoint, TokenFile
from reconciler.backends.security.exchange import ExchangeLogin, SaslExchange
from reconciler.errors import ReconcilerError

_CARRIER: Final = "sasl_oauth_token_provider"
"""The one setting of the library through which an object can reach a mechanism."""


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
        """For the library's log."""
        return f"authenticated with {self._name}"


@AbstractTokenProvider.register
class _Tokens:
    """Gives the library tokens, and Kafka's extensions of a login."""

    def __init__(self, token: Callable[[], str], extensions: Mapping[str, str]) -> None:
        self._token = token
        self._extensions = dict(extensions)

    def token(self) -> str:
        """The current one. Raises ``LoginStoppedError``."""
        try:
            return self._token()
        except ReconcilerError as error:
            raise LoginStoppedError(error) from error

    def extensions(self) -> dict[str, str]:
        """Names and values that go with the token."""
        return self._extensions


class _LastOfFile:
    """The token in a file, and the last one while the file is being replaced."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file
        self._last = ""

    def __call__(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._last = self._file.token() or self._last
        return self._last


def login_settings(login: BrokerLogin | None, *, host: str) -> dict[str, Any]:
    """The library's settings for a login; ``host`` is that of a bootstrap server."""
    if login is None:
        return {}
    if isinstance(login, SaslLogin):
        return {
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": login.username,
            "sasl_plain_password": login.password,
        }
    if isinstance(login, TokenFile | TokenEndpoint):
        token = _LastOfFile(login) if isinstance(login, TokenFile) else EndpointTokens(login).token
        return {"sasl_mechanism": login.mechanism, _CARRIER: _Tokens(token, login.extensions)}
    if isinstance(login, IamLogin):
        identity = IamIdentity(login)
        if login.as_token:
            return {"sasl_mechanism": login.mechanism, _CARRIER: _Tokens(lambda: iam_token(identity, host), login.extensions)}
        return _exchange_settings(identity)
    return _exchange_settings(login)


def _exchange_settings(login: ExchangeLogin) -> dict[str, Any]:
    _register(login.mechanism)
    return {"sasl_mechanism": login.mechanism, _CARRIER: _Begun(login)}


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
