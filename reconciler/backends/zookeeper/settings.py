"""How to reach a ZooKeeper: servers, chroot, login, TLS and deadlines, free of any library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from reconciler.backends.security.tls import Tls
from reconciler.errors import UsageError
from reconciler.model import escaped

_FORM: Final = "HOST:PORT,HOST:PORT/CHROOT (an IPv6 address in brackets: [::1]:2181)"
_DEFAULT_PORT: Final = 2181


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestLogin:
    """A name and password for SASL's DIGEST-MD5, the one that ZooKeeper's servers offer. The password is in no ``repr``."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSecurity:
    """What a connection needs beyond an address; neither: plaintext and anonymous."""

    login: DigestLogin | None = None
    tls: Tls | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who is trusted and who one is."""
        return self.tls.files if self.tls else ()

    @property
    def principal(self) -> str | None:
        """Whom the servers take us for, as far as the settings tell."""
        return self.login.username if self.login else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """One ensemble to connect to. ``chroot`` is empty or begins with a slash.

    ``connect_seconds`` bounds the first connection. After a connection broke, others are tried, and the session with its lock
    lives on for ``session_seconds`` (the servers have bounds of their own for it). ``request_seconds`` bounds an answer.
    """

    servers: tuple[tuple[str, int], ...]
    chroot: str = ""
    security: ZooKeeperSecurity = field(default_factory=ZooKeeperSecurity)
    connect_seconds: float = 10.0
    session_seconds: float = 18.0
    request_seconds: float = 30.0


def parse_connection(text: str) -> tuple[tuple[tuple[str, int], ...], str]:
    """``zk1:2181,zk2:2181/chroot`` as Kafka's ``zookeeper.connect`` has it: servers (port 2181 if none is given) and the chroot.

    Raises ``UsageError`` naming the part that is wrong.
    """
    servers, slash, below = text.strip().partition("/")
    parts = [part.strip() for part in servers.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"no ZooKeeper server is given; write {_FORM}")
    return tuple(_server(part) for part in parts), _chroot(slash + below)


def connection_text(servers: tuple[tuple[str, int], ...], chroot: str) -> str:
    """The way back."""
    return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in servers) + chroot


def _server(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(_DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65536
    if not host or not is_port or any(char.isspace() for char in host):
        raise UsageError(f"{escaped(text)} is not a ZooKeeper server; write {_FORM}")
    return host, int(port)


def _chroot(text: str) -> str:
    chroot = text.rstrip("/")
    parts = chroot.split("/")[1:]
    if not all(part and part not in (".", "..") and part.isprintable() for part in parts):
        raise UsageError(f"{escaped(text)} is not a chroot of ZooKeeper; write {_FORM}")
    return chroot
