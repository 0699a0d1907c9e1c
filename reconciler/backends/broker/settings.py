"""How to reach a cluster: servers, security and deadlines, also from Kafka's own ``client.properties`` (``--command-config``).

Only what decides how to connect is read from the file; everything else is ignored. What cannot be honoured and matters is refused
by name. Values are secrets until proven otherwise: no message repeats one that may be. Free of any client library.

The principal that brokers will authenticate us as follows from these settings by Kafka's default rules: it is the name that an
ACL has to be granted to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.backends.security.logins import BrokerLogin, SaslLogin, password_login
from reconciler.backends.security.properties_file import JaasLine, JavaProperties, load_properties
from reconciler.backends.security.tls import Tls, read_tls
from reconciler.errors import UsageError
from reconciler.hooks import added, load

CLIENT_ID: Final = "kafka-quotas"
"""What brokers see as client id, also in their request logs and quotas."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ANONYMOUS: Final = "ANONYMOUS"


_JAVA_CLASSES: Final = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")
_JAAS: Final = "sasl.jaas.config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What a connection needs beyond an address; neither: plaintext."""

    sasl: BrokerLogin | None = None
    tls: Tls | None = None
    provider_files: tuple[str, ...] = ()
    """Files that the properties refer to for their values."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who is trusted and who one is."""
        return (*(self.sasl.files if self.sasl else ()), *(self.tls.files if self.tls else ()), *self.provider_files)

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
        raise UsageError("no bootstrap server is given. Write HOST:PORT, several with commas between them")
    servers = []
    for part in parts:
        if (server := parse_server(part)) is None:
            raise UsageError(f"{part!r} is not a bootstrap server. Write HOST:PORT (an IPv6 address in brackets: [::1]:9092)")
        servers.append(server)
    return tuple(servers)


def parse_server(text: str, *, default_port: int | None = None) -> tuple[str, int] | None:
    """``host:port``, brackets around an IPv6 address, as a pair. ``None`` for anything else."""
    host, colon, port = text.rpartition(":")
    if default_port is not None and (not colon or text.endswith("]")):
        host, port = text, str(default_port)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65536
    return (host, int(port)) if is_port and host and "/" not in host and not any(map(str.isspace, host)) else None


def server_text(host: str, port: int) -> str:
    """``host:port`` for a message, brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """What the file states about the connection."""

    security: Security = field(default_factory=Security)
    client_id: str | None = None


def parse_client_properties(content: bytes, source: str) -> ClientProperties:
    """Settings from the bytes of a Java properties file; ``source`` names it in messages. Raises ``UsageError``."""
    return client_properties(load_properties(content, source=source), source=source)


def client_properties(properties: Mapping[str, str], *, source: str) -> ClientProperties:
    """The same from key and value pairs; ``source`` names the file in messages."""
    settings = JavaProperties(properties, source)
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise settings.refused("security.protocol", f"{protocol!r} is not one of {', '.join(_PROTOCOLS)}")
    sasl = read_login(settings) if protocol.startswith("SASL") else None
    tls = read_tls(settings) if protocol.endswith("SSL") else None
    client_id = settings.get("client.id") or None
    security = Security(sasl=sasl, tls=tls, provider_files=settings.provider_files)
    return ClientProperties(security=security, client_id=client_id)


def principal_name(security: Security) -> str | None:
    """The name without ``User:``, ``None`` when the settings do not show it.

    Brokers may map names (``ssl.principal.mapping.rules``, a principal builder), and hosted ones do; no client can see that.
    """
    if security.sasl is not None:
        return security.sasl.known_name()
    if security.tls is not None:
        return _subject_of_certificate(security.tls)
    return _ANONYMOUS


def _subject_of_certificate(tls: Tls) -> str | None:
    # Imported here, as below: most connections never need to know.
    from reconciler.backends.security.certificates import subject

    chain = _chain(tls)
    return _ANONYMOUS if chain is None else subject(chain)


def refused_certificate(tls: Tls | None) -> str:
    """The reason to report when a server refused the client certificate; servers give no reason."""
    from reconciler.backends.security.certificates import past_expiry

    chain = _chain(tls) if tls is not None else None
    if chain is None:
        return "the server wants a client certificate: ssl.keystore.location names a store with one"
    if day := past_expiry(chain):
        return f"the server refused our client certificate, which expired on {day}"
    return (
        "the server refused our client certificate: perhaps it does not know the authority that signed it (ssl.keystore.location)"
    )


def _chain(tls: Tls) -> bytes | None:
    """Our own certificates in PEM; ``None`` when we have none, empty when they cannot be read any more."""
    if tls.key_pair is not None:
        return tls.key_pair.chain
    if tls.certificate_file is None:
        return None
    try:
        return Path(tls.certificate_file).read_bytes()
    except OSError:
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginKind:
    """A mechanism. ``read`` makes a login of the settings and raises ``UsageError`` naming the one that cannot be used."""

    mechanism: str
    module: str
    """How the class name of its login module ends."""
    needs: str
    """What ``sasl.jaas.config`` states, in words or as an example."""
    read: Callable[[JavaProperties, JaasLine], BrokerLogin]
    handlers: tuple[str, ...] = ()
    """How the names of Java's classes end whose work is done here."""


def read_login(settings: JavaProperties) -> BrokerLogin:
    """Read the login from the ``sasl.*`` settings. Raises ``UsageError`` naming the one that cannot be used."""
    mechanism = settings.get("sasl.mechanism", "GSSAPI").upper()
    kind = next((kind for kind in login_kinds() if kind.mechanism == mechanism), None)
    if kind is None:
        known = ", ".join(kind.mechanism for kind in login_kinds())
        raise settings.refused("sasl.mechanism", f"{mechanism} is not supported here. Supported are {known}")
    for name in _JAVA_CLASSES:
        if (text := settings.get(name)) and not text.endswith(kind.handlers or ("\0",)):
            raise settings.refused(name, "Java classes cannot be used here")
    return kind.read(settings, _jaas(settings, kind))


def login_kinds() -> Iterator[LoginKind]:
    """Yield the mechanisms of SASL that can be used: those with a password, and what features add."""
    yield from _KINDS
    for place in added("LOGINS"):
        yield from load(place)


def _password(settings: JavaProperties, line: JaasLine) -> SaslLogin:
    return password_login(settings, line, mechanism=settings.get("sasl.mechanism").upper(), setting=_JAAS)


def _jaas(settings: JavaProperties, kind: LoginKind) -> JaasLine:
    if not settings.get(_JAAS):
        raise settings.refused(_JAAS, f"the value is missing, and {kind.mechanism} needs {kind.needs}")
    line = settings.jaas(_JAAS)
    if not line.module.endswith(kind.module):
        raise settings.refused(_JAAS, f"the login module is not the {kind.module} that {kind.mechanism} takes")
    return line


_KINDS: Final = tuple(
    LoginKind(mechanism=mechanism, module=module, needs="a user name and a password", read=_password)
    for mechanism, module in (
        ("PLAIN", "PlainLoginModule"),
        ("SCRAM-SHA-256", "ScramLoginModule"),
        ("SCRAM-SHA-512", "ScramLoginModule"),
    )
)
