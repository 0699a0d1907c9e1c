"""TLS: the settings of a properties file, its key and trust stores, and what Python's ``ssl`` gets of them.

Stores in PEM and PKCS12 are opened once here, so that a bad one is named at once. ``ssl`` takes a private key from a file only.
The key is sealed with a passphrase that exists in this process alone, and its file (0600) lives for one call: whatever happens
to the file, it is not a secret.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeVar

from reconciler.errors import UsageError

_KINDS: Final = ("PEM", "PKCS12", "JKS")
"""JKS is Kafka's default, under which Java opens PKCS12, too."""
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedKeyPair:
    """A certificate chain (the first is one's own) and its private key, sealed; all PEM."""

    chain: bytes = field(repr=False)
    sealed_key: bytes = field(repr=False)
    passphrase: str = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make the context present it. Raises ``ssl.SSLError`` when key and certificate do not belong together."""
        descriptor, name = tempfile.mkstemp(prefix="kafka-quotas-", suffix=".pem")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.chain + self.sealed_key)
            context.load_cert_chain(name, password=self.passphrase)
        finally:
            Path(name).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS. Without ``ca_file`` and ``ca_pem`` the system's authorities are trusted; certificate and key are for mutual TLS.

    Files are PEM; what came in another form is in ``ca_pem`` and ``key_pair``. ``files`` names every file that was read.
    """

    ca_file: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    key_pair: SealedKeyPair | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_host_name: bool = True
    files: tuple[str, ...] = ()


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Make Python's context of the settings. Raises ``OSError`` (also as ``ssl.SSLError``) or ``ValueError`` for bad ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_host_name
    if tls.ca_pem:
        context.load_verify_locations(cadata=tls.ca_pem)
    elif tls.ca_file is not None:
        context.load_verify_locations(tls.ca_file)
    elif tls.ca_pem is None:
        context.load_default_certs()
    if tls.key_pair is not None:
        tls.key_pair.load_into(context)
    elif tls.certificate_file is not None:
        # An empty password keeps OpenSSL from asking for one at the terminal.
        context.load_cert_chain(tls.certificate_file, password=tls.key_password or "")
    return context


class Settings(Protocol):
    """The properties, and the way to refuse one."""

    def get(self, key: str, default: str = "") -> str:
        """A value without the space around it."""
        ...

    def name(self, key: str) -> str:
        """Return the setting's name in the file."""
        ...

    def refused(self, key: str, why: str) -> UsageError:
        """The error that names a setting."""
        ...


def read_tls(settings: Settings) -> Tls:
    """Read the ``ssl.*`` settings. Raises ``UsageError`` naming the one that cannot be used."""
    if settings.get("ssl.engine.factory.class"):
        raise settings.refused("ssl.engine.factory.class", "Java classes cannot be used here")
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", ""):
        raise settings.refused(
            "ssl.endpoint.identification.algorithm", "write https, or leave the value empty to switch the check off"
        )
    trust, keys = _kind(settings, "ssl.truststore"), _kind(settings, "ssl.keystore")
    trust_file, key_file = settings.get("ssl.truststore.location") or None, settings.get("ssl.keystore.location") or None
    tls = Tls(
        ca_file=trust_file if trust == "PEM" else None,
        ca_pem=_authorities(settings, trust, trust_file),
        certificate_file=key_file if keys == "PEM" else None,
        key_pair=_key_pair(settings, keys, key_file),
        key_password=settings.get("ssl.key.password") or None,
        check_host_name=algorithm == "https",
        files=tuple(file for file in (trust_file, key_file) if file),
    )
    _require_usable(settings, tls)
    return tls


def _kind(settings: Settings, prefix: str) -> str:
    kind = settings.get(f"{prefix}.type", "JKS").upper()
    if kind not in _KINDS and settings.get(f"{prefix}.location"):
        raise settings.refused(f"{prefix}.type", f"{kind} stores are not supported here. Write PEM or PKCS12")
    return kind


def _authorities(settings: Settings, kind: str, file: str | None) -> str | None:
    key = "ssl.truststore.certificates"
    if inline := settings.get(key):
        _require_inline(settings, key, kind, file)
        return inline
    if file is None or kind == "PEM":
        return None
    from reconciler.backends.security.certificates import store_authorities

    return _from_store(settings, "ssl.truststore", file, store_authorities)


def _key_pair(settings: Settings, kind: str, file: str | None) -> SealedKeyPair | None:
    chain, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    if chain or key:
        name = "ssl.keystore.key" if key else "ssl.keystore.certificate.chain"
        _require_inline(settings, name, kind, file)
        if not (chain and key):
            raise settings.refused(name, "ssl.keystore.key and ssl.keystore.certificate.chain go together. Set the other, too")
        from reconciler.backends.security.certificates import pem_key_pair

        try:
            return pem_key_pair(chain, key, settings.get("ssl.key.password") or None)
        except ValueError as error:
            raise settings.refused("ssl.keystore.key", str(error)) from None
    if file is None or kind == "PEM":
        return None
    from reconciler.backends.security.certificates import store_key_pair

    return _from_store(settings, "ssl.keystore", file, store_key_pair)


def _require_inline(settings: Settings, key: str, kind: str, file: str | None) -> None:
    prefix = ".".join(key.split(".")[:2])
    if kind != "PEM":
        raise settings.refused(key, f"PEM text in the properties file needs {prefix}.type=PEM")
    if file is not None:
        raise settings.refused(key, f"this setting and {prefix}.location are both given. Kafka takes one of them")


def _from_store(settings: Settings, prefix: str, file: str, read: Callable[[bytes, str], _Read]) -> _Read:
    try:
        content = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise settings.refused(f"{prefix}.location", _why(settings, file, error)) from None
    if b"-----BEGIN " in content[:4096]:
        raise settings.refused(f"{prefix}.type", f"{file} is in PEM form: set {settings.name(prefix)}.type=PEM")
    try:
        return read(content, settings.get(f"{prefix}.password"))
    except ValueError as error:
        password = settings.name(f"{prefix}.password")
        raise settings.refused(f"{prefix}.location", f"{file} cannot be used: {error} ({password})") from None


def _require_usable(settings: Settings, tls: Tls) -> None:
    trust = Tls(ca_file=tls.ca_file, ca_pem=tls.ca_pem)
    own = Tls(ca_pem="", certificate_file=tls.certificate_file, key_pair=tls.key_pair, key_password=tls.key_password)
    for part, prefix, inline in ((trust, "ssl.truststore", "certificates"), (own, "ssl.keystore", "key")):
        file = tls.ca_file if part is trust else tls.certificate_file
        try:
            tls_context(part)
        except (OSError, ValueError) as error:
            if file is not None:
                raise settings.refused(f"{prefix}.location", _why(settings, file, error)) from None
            name = f"{prefix}.location" if settings.get(f"{prefix}.location") else f"{prefix}.{inline}"
            raise settings.refused(name, "the value contains no usable certificates, or no key that fits them") from None


def _why(settings: Settings, file: str, error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"{file} does not contain usable PEM, or {settings.name('ssl.key.password')} is wrong"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"{file} cannot be read: {reason or 'not a usable file'}"
