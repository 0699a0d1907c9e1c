"""Kafka's own ``client.properties``, as its command line tools take with ``--command-config``.

Only what decides how to connect is read; everything else is ignored. What cannot be honoured and matters is refused by name.
Values are secrets until proven otherwise: no message repeats one that may be.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import javaproperties

from reconciler.backends.broker.jaas import parse_jaas
from reconciler.backends.broker.settings import SaslLogin, Security, Tls
from reconciler.errors import FileAccessError, UsageError
from reconciler.model.entity import escaped

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
_INLINE_PEM: Final = ("ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """What the file says about the connection."""

    security: Security = field(default_factory=Security)
    client_id: str | None = None


def read_client_properties(path: Path) -> ClientProperties:
    """Read the file. Raises ``FileAccessError`` when it cannot be read, ``UsageError`` naming the setting that cannot be used."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"the properties file {path} cannot be read: {error.strerror}") from error
    return parse_client_properties(content, source=str(path))


def parse_client_properties(content: bytes, *, source: str) -> ClientProperties:
    """The same from a file's bytes; ``source`` names the file in messages."""
    try:
        properties = javaproperties.load(io.BytesIO(content))
    except ValueError as error:
        raise UsageError(f"{source} is not a Java properties file: it has a malformed \\u escape") from error
    return client_properties(properties, source=source)


def client_properties(properties: Mapping[str, str], *, source: str) -> ClientProperties:
    """The same from key and value pairs; ``source`` names the file in messages."""
    settings = _Settings(properties, source)
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise settings.refused("security.protocol", f"{protocol!r} is none of {', '.join(_PROTOCOLS)}")
    security = Security(
        sasl=_login(settings) if protocol.startswith("SASL") else None,
        tls=_tls(settings) if protocol.endswith("SSL") else None,
    )
    return ClientProperties(security=security, client_id=settings.get("client.id") or None)


class _Settings:
    def __init__(self, properties: Mapping[str, str], source: str) -> None:
        self._properties = properties
        self._source = source

    def get(self, key: str, default: str = "") -> str:
        return self._properties.get(key, default).strip()

    def refused(self, key: str, why: str) -> UsageError:
        return UsageError(f"{self._source}: {key}: {escaped(why)}")


def _login(settings: _Settings) -> SaslLogin:
    mechanism = settings.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in _MECHANISMS:
        known = ", ".join(_MECHANISMS)
        raise settings.refused("sasl.mechanism", f"{mechanism} is not supported here; supported are {known}")
    text = settings.get("sasl.jaas.config")
    if not text:
        raise settings.refused("sasl.jaas.config", f"it is missing, and {mechanism} needs a user name and a password")
    try:
        line = parse_jaas(text)
    except ValueError as error:
        raise settings.refused("sasl.jaas.config", f"it cannot be read: {error}") from None
    if not line.module.endswith(_MECHANISMS[mechanism]):
        raise settings.refused("sasl.jaas.config", f"its login module is not the {_MECHANISMS[mechanism]} that {mechanism} takes")
    if line.options.get("tokenauth", "").lower() == "true":
        raise settings.refused("sasl.jaas.config", "delegation tokens (tokenauth) are not supported here")
    if not line.options.get("username") or "password" not in line.options:
        raise settings.refused("sasl.jaas.config", "it has no username, or no password")
    return SaslLogin(mechanism=mechanism, username=line.options["username"], password=line.options["password"])


def _tls(settings: _Settings) -> Tls:
    for key in _INLINE_PEM:
        if settings.get(key):
            raise settings.refused(key, "certificates inside the properties file are not supported here; name a PEM file")
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", ""):
        raise settings.refused("ssl.endpoint.identification.algorithm", "it is https, or empty to switch the check off")
    tls = Tls(
        ca_file=_store(settings, "ssl.truststore"),
        certificate_file=_store(settings, "ssl.keystore"),
        key_password=settings.get("ssl.key.password") or None,
        check_host_name=algorithm == "https",
    )
    _require_usable(settings, tls)
    return tls


def _store(settings: _Settings, prefix: str) -> str | None:
    location = settings.get(f"{prefix}.location")
    if not location:
        return None
    kind = settings.get(f"{prefix}.type", "JKS").upper()
    if kind != "PEM":
        raise settings.refused(
            f"{prefix}.type",
            f"{kind} stores are not supported here; convert it (keytool -importkeystore -deststoretype PKCS12, then openssl "
            f"pkcs12 -nodes) and set {prefix}.type=PEM and {prefix}.location to the PEM file",
        )
    return location


def _require_usable(settings: _Settings, tls: Tls) -> None:
    """Load the files once, so that a bad one is named here and not found out in the middle of a handshake."""
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca_file:
        try:
            probe.load_verify_locations(tls.ca_file)
        except (OSError, ValueError) as error:
            raise settings.refused("ssl.truststore.location", _why(tls.ca_file, error)) from None
    if tls.certificate_file:
        # An empty password keeps OpenSSL from asking for one at the terminal.
        try:
            probe.load_cert_chain(tls.certificate_file, password=tls.key_password or "")
        except (OSError, ValueError) as error:
            raise settings.refused("ssl.keystore.location", _why(tls.certificate_file, error)) from None


def _why(file: str, error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"{file} does not hold what is needed in PEM form, or ssl.key.password is wrong"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"{file} cannot be read: {reason or 'not a usable file'}"
