"""Logins: what a file of properties states about them, and what a connection needs of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from reconciler.backends.security.properties_file import JaasLine, JavaProperties


class BrokerLogin(Protocol):
    """What a file of properties states about a login. Most have no files, no actions, and need nothing to be opened."""

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who one is."""
        return ()

    @property
    def actions(self) -> Mapping[str, str]:
        """The actions that a policy of the identity has to allow, by ACL operation; empty where rights are ACLs."""
        return {}

    def known_name(self) -> str | None:
        """The name of the principal without ``User:``, ``None`` when the settings do not show it."""
        return None

    @property
    def principal(self) -> str | None:
        """The name as the settings have it. Brokers may know a part of it."""
        return self.known_name()

    def opened(self, host: str, /) -> OpenedLogin:
        """Return what a connection needs of it; ``host`` is that of a bootstrap server."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslLogin(BrokerLogin):
    """A name and password for SASL; ``mechanism`` is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or, for ZooKeeper, DIGEST-MD5.

    The password is in no ``repr``.
    """

    mechanism: str = field()
    username: str
    password: str = field(repr=False)

    def known_name(self) -> str | None:
        """Return the username."""
        return self.username

    def opened(self, _host: str, /) -> SaslLogin:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerTokens:
    """Gives the token of now, and Kafka's extensions of a login. ``token`` raises ``AuthenticationError``."""

    token: Callable[[], str]
    extensions: Mapping[str, str]


def password_login(settings: JavaProperties, line: JaasLine, *, mechanism: str, setting: str) -> SaslLogin:
    """The options of a login module that takes a password. Raises ``UsageError``."""
    if line.options.get("tokenauth", "").lower() == "true":
        raise settings.refused(setting, "delegation tokens (tokenauth) are not supported here")
    if not line.options.get("username") or "password" not in line.options:
        raise settings.refused(setting, "the username or the password is missing")
    return SaslLogin(mechanism=mechanism, username=line.options["username"], password=line.options["password"])


class SaslExchange(Protocol):
    """One login on one connection."""

    @property
    def is_complete(self) -> bool:
        """Whether the last message of the client's part was given out."""
        ...

    def respond(self, challenge: bytes | None, /) -> bytes:
        """The next message, ``None`` being the server's silence before the first. Raises ``AuthenticationError``."""
        ...


class ExchangeLogin(Protocol):
    """Settings with which logins begin, one for each connection."""

    @property
    def mechanism(self) -> str:
        """The name of the SASL mechanism."""
        ...

    def begin(self, host: str) -> SaslExchange:
        """Begin a login at a server. Raises ``AuthenticationError``, or ``MissingDependencyError`` without a package."""
        ...


OpenedLogin: TypeAlias = SaslLogin | BearerTokens | ExchangeLogin
"""A password, tokens, or messages to and fro."""
