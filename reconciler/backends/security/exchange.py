"""What a login is to the connection that carries it: messages to and fro, whatever the mechanism."""

from __future__ import annotations

from typing import Protocol


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
