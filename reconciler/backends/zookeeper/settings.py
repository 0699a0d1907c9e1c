"""How to reach a ZooKeeper: servers, chroot, login, TLS, deadlines; and the ``zookeeper.*`` settings of a properties file.

These are the names that Kafka's brokers have for TLS to ZooKeeper, and a login. Brokers take their login from a JAAS file
(``Client { ... };``), which is a setting of Java; here its line stands in the properties file, as ``sasl.jaas.config`` does for
brokers. Everything else in the file is ignored. Free of any library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.backends.broker.settings import login_kinds, parse_server, server_text
from reconciler.backends.security.logins import BrokerLogin, password_login
from reconciler.backends.security.properties_file import JavaProperties, load_properties
from reconciler.backends.security.tls import Tls, read_tls
from reconciler.errors import UsageError
from reconciler.model import escaped

_FORM: Final = "HOST:PORT,HOST:PORT/CHROOT (an IPv6 address in brackets: [::1]:2181)"
_DEFAULT_PORT: Final = 2181

JAAS: Final = "zookeeper.sasl.jaas.config"
_MODULE: Final = "DigestLoginModule"
_TICKETS: Final = "GSSAPI"
DIGEST: Final = "zookeeper.auth.digest"
_NETTY: Final = "ClientCnxnSocketNetty"
_KIND_BY_SUFFIX: Final = {".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"}
_OF_ZOOKEEPER: Final = frozenset({
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "ssl.endpoint.identification.algorithm",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSecurity:
    """What a connection needs beyond an address; nothing: plaintext and anonymous.

    ``digest`` is ``user:password`` for ZooKeeper's own scheme ``digest``, a second identity beside that of the login.
    """

    login: BrokerLogin | None = None
    digest: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    provider_files: tuple[str, ...] = ()
    """Files that the properties refer to for their values."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who is trusted and who one is."""
        return (*(self.login.files if self.login else ()), *(self.tls.files if self.tls else ()), *self.provider_files)

    @property
    def principal(self) -> str | None:
        """The principal that the servers will see, as far as the settings show."""
        return None if self.login is None else self.login.principal


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
        raise UsageError(f"no ZooKeeper server is given. Write {_FORM}")
    return tuple(_server(part) for part in parts), _chroot(slash + below)


def connection_text(servers: tuple[tuple[str, int], ...], chroot: str) -> str:
    """The way back."""
    return ",".join(server_text(host, port) for host, port in servers) + chroot


def _server(text: str) -> tuple[str, int]:
    server = parse_server(text, default_port=_DEFAULT_PORT)
    if server is None:
        raise UsageError(f"{escaped(text)} is not a ZooKeeper server. Write {_FORM}")
    return server


def _chroot(text: str) -> str:
    chroot = text.rstrip("/")
    parts = chroot.split("/")[1:]
    if not all(part and part not in (".", "..") and part.isprintable() for part in parts):
        raise UsageError(f"{escaped(text)} is not a chroot of ZooKeeper. Write {_FORM}")
    return chroot


def parse_zookeeper_properties(content: bytes, source: str) -> ZooKeeperSecurity:
    """``zookeeper.*`` settings from the bytes of a Java properties file; ``source`` names it. Raises ``UsageError``."""
    return zookeeper_security(load_properties(content, source=source), source=source)


def zookeeper_security(properties: Mapping[str, str], *, source: str) -> ZooKeeperSecurity:
    """The same from key and value pairs."""
    settings, tls_settings = JavaProperties(properties, source), _TlsSettings(properties, source)
    login, digest = _login(settings), _digest(settings)
    tls = read_tls(tls_settings) if _wants_tls(settings) else None
    provider_files = (*settings.provider_files, *tls_settings.provider_files)
    return ZooKeeperSecurity(login=login, digest=digest, tls=tls, provider_files=provider_files)


def _wants_tls(settings: JavaProperties) -> bool:
    key = "zookeeper.ssl.client.enable"
    secure = settings.get(key, "false").lower()
    if secure not in ("true", "false"):
        raise settings.refused(key, "write true or false")
    socket = settings.get("zookeeper.clientCnxnSocket")
    if secure == "true" and socket and not socket.endswith(_NETTY):
        # Java's client goes on without TLS then, and says nothing.
        raise settings.refused("zookeeper.clientCnxnSocket", f"TLS needs org.apache.zookeeper.{_NETTY}")
    return secure == "true"


def _login(settings: JavaProperties) -> BrokerLogin | None:
    if not settings.get(JAAS) or settings.get("zookeeper.sasl.client", "true").lower() == "false":
        return None
    line = settings.jaas(JAAS)
    if line.module.endswith(_MODULE):
        return password_login(settings, line, mechanism="DIGEST-MD5", setting=JAAS)
    supported = f"supported here are org.apache.zookeeper.server.auth.{_MODULE} with username and password"
    for kind in login_kinds():
        if kind.mechanism == _TICKETS:
            if line.module.endswith(kind.module):
                return kind.read(settings, line)
            supported += f", and com.sun.security.auth.module.{kind.module}"
    raise settings.refused(JAAS, supported)


def _digest(settings: JavaProperties) -> str | None:
    text = settings.get(DIGEST)
    if text and (text.startswith(":") or ":" not in text):
        raise settings.refused(DIGEST, "write USER:PASSWORD")
    return text or None


class _TlsSettings(JavaProperties):
    """ZooKeeper's settings under the names of Kafka's clients: a key has its store's password, a file's name shows its type."""

    def get(self, key: str, default: str = "") -> str:
        """A value without the space around it."""
        if key == "ssl.key.password":
            return super().get(self.name(key))
        if key not in _OF_ZOOKEEPER:
            return default
        value = super().get(self.name(key))
        if not value and key.endswith("store.type"):
            location = self.get(key.replace(".type", ".location"))
            return _KIND_BY_SUFFIX.get(Path(location).suffix.lower(), default)
        return value if value or self.name(key) in self._properties else default

    def name(self, key: str) -> str:
        """Return the setting's name in the file."""
        return f"zookeeper.{'ssl.keystore.password' if key == 'ssl.key.password' else key}"
