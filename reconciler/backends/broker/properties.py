"""Kafka's own ``client.properties``, as its command line tools take with ``--command-config``.

Only what decides how to connect is read; everything else is ignored. What cannot be honoured and matters is refused by name.
Values are secrets until proven otherwise: no message repeats one that may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from reconciler.backends.broker.settings import SaslLogin, Security, TokenFile
from reconciler.backends.security.jaas import JaasLine, parse_jaas
from reconciler.backends.security.java_properties import JavaProperties, file_content, load_properties
from reconciler.backends.security.tls_settings import read_tls

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """What the file says about the connection."""

    security: Security = field(default_factory=Security)
    client_id: str | None = None


def read_client_properties(path: Path) -> ClientProperties:
    """Read the file. Raises ``FileAccessError`` when it cannot be read, ``UsageError`` naming the setting that cannot be used."""
    return parse_client_properties(file_content(path), source=str(path))


def parse_client_properties(content: bytes, *, source: str) -> ClientProperties:
    """The same from a file's bytes; ``source`` names the file in messages."""
    return client_properties(load_properties(content, source=source), source=source)


def client_properties(properties: Mapping[str, str], *, source: str) -> ClientProperties:
    """The same from key and value pairs; ``source`` names the file in messages."""
    settings = JavaProperties(properties, source)
    if settings.get("config.providers"):
        raise settings.refused("config.providers", "Java classes cannot be used here; write the values themselves into the file")
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise settings.refused("security.protocol", f"{protocol!r} is none of {', '.join(_PROTOCOLS)}")
    security = Security(
        sasl=_login(settings) if protocol.startswith("SASL") else None,
        tls=read_tls(settings) if protocol.endswith("SSL") else None,
    )
    return ClientProperties(security=security, client_id=settings.get("client.id") or None)


def _login(settings: JavaProperties) -> SaslLogin | TokenFile:
    mechanism = settings.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in (*_MECHANISMS, _OAUTH):
        known = ", ".join((*_MECHANISMS, _OAUTH))
        raise settings.refused("sasl.mechanism", f"{mechanism} is not supported here; supported are {known}")
    for name in _JAVA_CLASSES:
        if (said := settings.get(name)) and not (mechanism == _OAUTH and said.endswith(_OAUTH_HANDLER)):
            raise settings.refused(name, "Java classes cannot be used here")
    line = _jaas(settings, mechanism)
    if mechanism == _OAUTH:
        return _token(settings)
    if line.options.get("tokenauth", "").lower() == "true":
        raise settings.refused("sasl.jaas.config", "delegation tokens (tokenauth) are not supported here")
    if not line.options.get("username") or "password" not in line.options:
        raise settings.refused("sasl.jaas.config", "it has no username, or no password")
    return SaslLogin(mechanism=mechanism, username=line.options["username"], password=line.options["password"])


def _jaas(settings: JavaProperties, mechanism: str) -> JaasLine:
    module = _MECHANISMS.get(mechanism, _OAUTH_MODULE)
    text = settings.get("sasl.jaas.config")
    if not text:
        needs = "a user name and a password" if mechanism in _MECHANISMS else f"{module} required;"
        raise settings.refused("sasl.jaas.config", f"it is missing, and {mechanism} needs {needs}")
    try:
        line = parse_jaas(text)
    except ValueError as error:
        raise settings.refused("sasl.jaas.config", f"it cannot be read: {error}") from None
    if not line.module.endswith(module):
        raise settings.refused("sasl.jaas.config", f"its login module is not the {module} that {mechanism} takes")
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
        why = error.strerror if isinstance(error, OSError) else "it is not a token"
        raise settings.refused(_OAUTH_URL, f"{file.path} cannot be read: {why}") from None
    if not token or any(char <= " " for char in token):
        raise settings.refused(_OAUTH_URL, f"{file.path} does not hold one token")
    return file
