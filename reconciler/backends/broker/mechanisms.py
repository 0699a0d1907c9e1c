"""kafka-python's mechanisms of SASL: which of them it runs itself, and how it runs those of this tool.

It picks a mechanism by its name. Under the names GSSAPI and AWS_MSK_IAM stands a choice: logins of this tool go to the classes
here, all others to the library's own, for the process may use the library for itself.
"""

from __future__ import annotations

from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from reconciler.backends.broker.logins import BearerTokens, BrokerLogin, SaslLogin
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


def login_settings(login: BrokerLogin | None, *, host: str) -> dict[str, Any]:
    """The library's settings for a login; ``host`` is that of a bootstrap server."""
    if login is None:
        return {}
    opened = login.opened(host)
    if isinstance(opened, SaslLogin):
        return {
            "sasl_mechanism": opened.mechanism,
            "sasl_plain_username": opened.username,
            "sasl_plain_password": opened.password,
        }
    if isinstance(opened, BearerTokens):
        return {"sasl_mechanism": login.mechanism, _CARRIER: _Tokens(opened)}
    return _exchange_settings(opened)


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
