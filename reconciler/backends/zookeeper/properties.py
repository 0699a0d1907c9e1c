"""The ``zookeeper.*`` settings of a properties file: the names that Kafka's brokers have for TLS to ZooKeeper, and a login.

Brokers take their login from a JAAS file (``Client { ... };``), which is a setting of Java; here its line stands in the
properties file, as ``sasl.jaas.config`` does for brokers. Everything else in the file is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.backends.security.properties_file import JavaProperties, file_content, load_properties, parse_jaas
from reconciler.backends.security.tls_settings import read_tls
from reconciler.backends.zookeeper.settings import DigestLogin, ZooKeeperSecurity

JAAS: Final = "zookeeper.sasl.jaas.config"
_MODULE: Final = "DigestLoginModule"
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


def read_zookeeper_properties(path: Path) -> ZooKeeperSecurity:
    """Read the file. Raises ``FileAccessError`` when it cannot be read, ``UsageError`` naming the setting that cannot be used."""
    return parse_zookeeper_properties(file_content(path), source=str(path))


def parse_zookeeper_properties(content: bytes, *, source: str) -> ZooKeeperSecurity:
    """The same from a file's bytes; ``source`` names the file in messages."""
    return zookeeper_security(load_properties(content, source=source), source=source)


def zookeeper_security(properties: Mapping[str, str], *, source: str) -> ZooKeeperSecurity:
    """The same from key and value pairs."""
    settings = JavaProperties(properties, source)
    return ZooKeeperSecurity(
        login=_login(settings), tls=read_tls(_TlsSettings(properties, source)) if _wants_tls(settings) else None
    )


def _wants_tls(settings: JavaProperties) -> bool:
    key = "zookeeper.ssl.client.enable"
    said = settings.get(key, "false").lower()
    if said not in ("true", "false"):
        raise settings.refused(key, "it is true or false")
    socket = settings.get("zookeeper.clientCnxnSocket")
    if said == "true" and socket and not socket.endswith(_NETTY):
        # Java's client goes on without TLS then, and says nothing.
        raise settings.refused("zookeeper.clientCnxnSocket", f"TLS needs org.apache.zookeeper.{_NETTY}")
    return said == "true"


def _login(settings: JavaProperties) -> DigestLogin | None:
    text = settings.get(JAAS)
    if not text or settings.get("zookeeper.sasl.client", "true").lower() == "false":
        return None
    try:
        line = parse_jaas(text)
    except ValueError as error:
        raise settings.refused(JAAS, f"it cannot be read: {error}") from None
    if not line.module.endswith(_MODULE):
        raise settings.refused(
            JAAS, f"only org.apache.zookeeper.server.auth.{_MODULE} is supported here, with username and password"
        )
    if not line.options.get("username") or "password" not in line.options:
        raise settings.refused(JAAS, "it has no username, or no password")
    return DigestLogin(username=line.options["username"], password=line.options["password"])


class _TlsSettings(JavaProperties):
    """ZooKeeper's settings under the names of Kafka's clients: a key has its store's password, a file's name tells its type."""

    def get(self, key: str, default: str = "") -> str:
        """A value without the space around it."""
        if key == "ssl.key.password":
            return super().get(self.name(key))
        if key not in _OF_ZOOKEEPER:
            return default
        said = super().get(self.name(key))
        if not said and key.endswith("store.type"):
            location = self.get(key.replace(".type", ".location"))
            return _KIND_BY_SUFFIX.get(Path(location).suffix.lower(), default)
        return said if said or self.name(key) in self._properties else default

    def name(self, key: str) -> str:
        """What the setting is called in the file."""
        return f"zookeeper.{'ssl.keystore.password' if key == 'ssl.key.password' else key}"
