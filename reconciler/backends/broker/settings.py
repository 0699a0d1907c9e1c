"""How to reach a cluster: servers, security and deadlines, also from Kafka's own ``client.properties`` (``--command-config``).

Only what decides how to connect is read from the file; everything else is ignored. What cannot be honoured and matters is refused
by name. Values are secrets until proven otherwise: no message repeats one that may be. Free of any client library.

The principal that brokers will authenticate us as follows from these settings by Kafka's default rules: it is the name that an
ACL has to be granted to.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from reconciler.backends.security.properties_file import JaasLine, JavaProperties, file_content, load_properties, parse_jaas
from reconciler.backends.security.tls import Tls, read_tls
from reconciler.errors import UsageError

CLIENT_ID: Final = "kafka-quotas"
"""What brokers see as client id, also in their request logs and quotas."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
_OAUTH: Final = "OAUTHBEARER"
_OAUTH_MODULE: Final = "OAuthBearerLoginModule"
_OAUTH_HANDLER: Final = "OAuthBearerLoginCallbackHandler"
_OAUTH_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_JAVA_CLASSES: Final = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")
_ANONYMOUS = "ANONYMOUS"


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
        """The token in the file now. Raises ``OSError`` or ``ValueError``."""
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
        raise UsageError("no bootstrap server is given. Write HOST:PORT, several with commas between them")
    return tuple(_parse_server(part) for part in parts)


def _parse_server(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not host or "/" in host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{text!r} is not a bootstrap server. Write HOST:PORT (an IPv6 address in brackets: [::1]:9092)")
    return host, int(port)


def server_text(host: str, port: int) -> str:
    """``host:port`` for a message, brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """What the file states about the connection."""

    security: Security = field(default_factory=Security)
    client_id: str | None = None


def read_client_properties(path: Path) -> ClientProperties:
    """Read the file. Raises ``FileAccessError`` when it cannot be read, ``UsageError`` naming the setting that cannot be used."""
    return parse_client_properties(file_content(path), source=str(path))


def parse_client_properties(content: bytes, *, source: str) -> ClientProperties:
    """Settings from the bytes of a Java properties file; ``source`` names it in messages. Raises ``UsageError``."""
    return client_properties(load_properties(content, source=source), source=source)


def client_properties(properties: Mapping[str, str], *, source: str) -> ClientProperties:
    """The same from key and value pairs; ``source`` names the file in messages."""
    settings = JavaProperties(properties, source)
    if settings.get("config.providers"):
        raise settings.refused("config.providers", "Java classes cannot be used here; write the values themselves into the file")
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise settings.refused("security.protocol", f"{protocol!r} is not one of {', '.join(_PROTOCOLS)}")
    security = Security(
        sasl=_login(settings) if protocol.startswith("SASL") else None,
        tls=read_tls(settings) if protocol.endswith("SSL") else None,
    )
    return ClientProperties(security=security, client_id=settings.get("client.id") or None)


def _login(settings: JavaProperties) -> SaslLogin | TokenFile:
    mechanism = settings.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in (*_MECHANISMS, _OAUTH):
        known = ", ".join((*_MECHANISMS, _OAUTH))
        raise settings.refused("sasl.mechanism", f"{mechanism} is not supported here. Supported are {known}")
    for name in _JAVA_CLASSES:
        if (text := settings.get(name)) and not (mechanism == _OAUTH and text.endswith(_OAUTH_HANDLER)):
            raise settings.refused(name, "Java classes cannot be used here")
    line = _jaas(settings, mechanism)
    if mechanism == _OAUTH:
        return _token(settings)
    if line.options.get("tokenauth", "").lower() == "true":
        raise settings.refused("sasl.jaas.config", "delegation tokens (tokenauth) are not supported here")
    if not line.options.get("username") or "password" not in line.options:
        raise settings.refused("sasl.jaas.config", "the username or the password is missing")
    return SaslLogin(mechanism=mechanism, username=line.options["username"], password=line.options["password"])


def _jaas(settings: JavaProperties, mechanism: str) -> JaasLine:
    module = _MECHANISMS.get(mechanism, _OAUTH_MODULE)
    text = settings.get("sasl.jaas.config")
    if not text:
        needs = "a user name and a password" if mechanism in _MECHANISMS else f"{module} required;"
        raise settings.refused("sasl.jaas.config", f"the value is missing, and {mechanism} needs {needs}")
    try:
        line = parse_jaas(text)
    except ValueError as error:
        raise settings.refused("sasl.jaas.config", f"the value cannot be read: {error}") from None
    if not line.module.endswith(module):
        raise settings.refused("sasl.jaas.config", f"the login module is not the {module} that {mechanism} takes")
    return line


def _token(settings: JavaProperties) -> TokenFile:
    url = urlsplit(settings.get(_OAUTH_URL))
    if url.scheme != "file" or url.netloc not in ("", "localhost"):
        raise settings.refused(
            _OAUTH_URL, "OAUTHBEARER takes its token from a file here (file:///run/kafka-token); let the pipeline fetch one"
        )
    file = TokenFile(path=url2pathname(url.path))
    try:
        token = file.token()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "the text is not a token"
        raise settings.refused(_OAUTH_URL, f"{file.path} cannot be read: {why}") from None
    if not token or any(char <= " " for char in token):
        raise settings.refused(_OAUTH_URL, f"{file.path} must contain one token and nothing else")
    return file


def principal_name(security: Security) -> str | None:
    """The name without ``User:``, ``None`` when the settings do not show it.

    Brokers may map names (``ssl.principal.mapping.rules``, a principal builder), and hosted ones do; no client can see that.
    """
    if isinstance(security.sasl, SaslLogin):
        return security.sasl.username
    if isinstance(security.sasl, TokenFile):
        return _subject_of_token(security.sasl)
    if security.tls is not None:
        return _subject_of_certificate(security.tls)
    return _ANONYMOUS


def _subject_of_token(file: TokenFile) -> str | None:
    try:
        payload = file.token().split(".")[1]
        subject = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return subject if isinstance(subject, str) else None


def _subject_of_certificate(tls: Tls) -> str | None:
    # Imported here, as below: most connections never need to know.
    from reconciler.backends.security.tls import subject

    chain = _chain(tls)
    return _ANONYMOUS if chain is None else subject(chain)


def refused_certificate(tls: Tls | None) -> str:
    """The reason to report when a server refused the client certificate; servers give no reason."""
    from reconciler.backends.security.tls import past_expiry

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
