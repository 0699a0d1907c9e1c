"""The TLS settings of a properties file: stores in PEM and PKCS12, opened once here, so that a bad one is named at once."""

from __future__ import annotations

import shlex
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar

from reconciler.backends.security.key_stores import is_java_store, pem_key_pair, pkcs12_authorities, pkcs12_key_pair
from reconciler.backends.security.tls import SealedKeyPair, Tls, tls_context
from reconciler.errors import UsageError

_KINDS: Final = ("PEM", "PKCS12", "JKS")
_Read = TypeVar("_Read")


class Settings(Protocol):
    """The properties, and the way to refuse one."""

    def get(self, key: str, default: str = "") -> str:
        """A value without the space around it."""
        ...

    def name(self, key: str) -> str:
        """What the setting is called in the file."""
        ...

    def refused(self, key: str, why: str) -> UsageError:
        """The error that names a setting."""
        ...


def read_tls(settings: Settings) -> Tls:
    """What the ``ssl.*`` settings say. Raises ``UsageError`` naming the one that cannot be used."""
    if settings.get("ssl.engine.factory.class"):
        raise settings.refused("ssl.engine.factory.class", "Java classes cannot be used here")
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", ""):
        raise settings.refused("ssl.endpoint.identification.algorithm", "it is https, or empty to switch the check off")
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
        raise settings.refused(f"{prefix}.type", f"{kind} stores are not supported here; supported are PEM and PKCS12")
    return kind


def _authorities(settings: Settings, kind: str, file: str | None) -> str | None:
    key = "ssl.truststore.certificates"
    if inline := settings.get(key):
        _require_inline(settings, key, kind, file)
        return inline
    if file is None or kind == "PEM":
        return None
    return _from_store(settings, "ssl.truststore", file, pkcs12_authorities)


def _key_pair(settings: Settings, kind: str, file: str | None) -> SealedKeyPair | None:
    chain, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    if chain or key:
        name = "ssl.keystore.key" if key else "ssl.keystore.certificate.chain"
        _require_inline(settings, name, kind, file)
        if not (chain and key):
            raise settings.refused(name, "ssl.keystore.key and ssl.keystore.certificate.chain go together; the other is missing")
        try:
            return pem_key_pair(chain, key, settings.get("ssl.key.password") or None)
        except ValueError as error:
            raise settings.refused("ssl.keystore.key", str(error)) from None
    if file is None or kind == "PEM":
        return None
    return _from_store(settings, "ssl.keystore", file, pkcs12_key_pair)


def _require_inline(settings: Settings, key: str, kind: str, file: str | None) -> None:
    prefix = ".".join(key.split(".")[:2])
    if kind != "PEM":
        raise settings.refused(key, f"PEM text in the properties file needs {prefix}.type=PEM")
    if file is not None:
        raise settings.refused(key, f"it and {prefix}.location are both given; Kafka takes one of them")


def _from_store(settings: Settings, prefix: str, file: str, read: Callable[[bytes, str], _Read]) -> _Read:
    try:
        content = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise settings.refused(f"{prefix}.location", _why(settings, file, error)) from None
    if is_java_store(content):
        converted = f"{file.removesuffix('.jks')}.p12"
        raise settings.refused(
            f"{prefix}.type",
            f"JKS stores are not supported here; convert it with: keytool -importkeystore -srckeystore {shlex.quote(file)} "
            f"-destkeystore {shlex.quote(converted)} -deststoretype PKCS12; then set "
            f"{settings.name(prefix)}.type=PKCS12 and {settings.name(prefix)}.location={converted}",
        )
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
            raise settings.refused(name, "it contains no usable certificates, or no key that fits them") from None


def _why(settings: Settings, file: str, error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"{file} does not contain usable PEM, or {settings.name('ssl.key.password')} is wrong"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"{file} cannot be read: {reason or 'not a usable file'}"
