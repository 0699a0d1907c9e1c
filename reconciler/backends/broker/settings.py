"""How to reach a cluster: servers, security and deadlines, free of any library."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.backends.security.tls import Tls
from reconciler.errors import UsageError

CLIENT_ID: Final = "kafka-quotas"
"""What brokers see as client id, also in their request logs and quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslLogin:
    """A name and password for SASL; ``mechanism`` is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. The password is in no ``repr``."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """A login with OAUTHBEARER: a token (JWT) in a file, read at every login, so that another program may renew it."""

    path: str

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        return "OAUTHBEARER"

    def token(self) -> str:
        """What the file holds now. Raises ``OSError`` or ``ValueError``."""
        return Path(self.path).read_text("ascii").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What a connection needs beyond an address; neither: plaintext."""

    sasl: SaslLogin | TokenFile | None = None
    tls: Tls | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who is trusted and who one is."""
        tokens = (self.sasl.path,) if isinstance(self.sasl, TokenFile) else ()
        return (*tokens, *(self.tls.files if self.tls else ()))

    @property
    def protocol(self) -> str:
        """Kafka's word for it: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        if self.sasl is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """One cluster to connect to. ``connect_seconds`` bounds a server's handshakes, ``request_seconds`` an answer."""

    servers: tuple[tuple[str, int], ...]
    security: Security = field(default_factory=Security)
    client_id: str = CLIENT_ID
    connect_seconds: float = 10.0
    request_seconds: float = 30.0


def parse_servers(texts: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """``("b1:9092,b2:9092", "[::1]:9092")`` as pairs of host and port. Raises ``UsageError`` naming the part that is neither."""
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if not parts:
        raise UsageError("no bootstrap server is given; write HOST:PORT, several with commas between them")
    return tuple(_parse_server(part) for part in parts)


def _parse_server(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not host or "/" in host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{text!r} is not a bootstrap server; write HOST:PORT (an IPv6 address in brackets: [::1]:9092)")
    return host, int(port)


def server_text(host: str, port: int) -> str:
    """``host:port`` for a message, brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
