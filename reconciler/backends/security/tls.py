"""TLS: the settings of a properties file, its key and trust stores, and what Python's ``ssl`` gets of them.

Stores in PEM and PKCS12 are opened once here, so that a bad one is named at once. ``ssl`` takes a private key from a file only.
The key is sealed with a passphrase that exists in this process alone, and its file (0600) lives for one call: whatever happens
to the file, it is not a secret.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import secrets
import ssl
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, load_pkcs12
from cryptography.utils import CryptographyDeprecationWarning

from reconciler.backends.security.java_store import is_java_store, open_java_store
from reconciler.errors import UsageError
from reconciler.model import Certificate, CertificateOwner

_KINDS: Final = ("PEM", "PKCS12", "JKS")
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
    """What the settings mean for Python. Raises ``OSError`` (of which ``ssl.SSLError`` is one) or ``ValueError`` for bad ones."""
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
        """What the setting is called in the file."""
        ...

    def refused(self, key: str, why: str) -> UsageError:
        """The error that names a setting."""
        ...


def read_tls(settings: Settings) -> Tls:
    """What the ``ssl.*`` settings state. Raises ``UsageError`` naming the one that cannot be used."""
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
        raise settings.refused(f"{prefix}.type", f"{kind} stores are not supported here. Supported are PEM, PKCS12 and JKS")
    return kind


def _authorities(settings: Settings, kind: str, file: str | None) -> str | None:
    key = "ssl.truststore.certificates"
    if inline := settings.get(key):
        _require_inline(settings, key, kind, file)
        return inline
    if file is None or kind == "PEM":
        return None
    return _from_store(settings, "ssl.truststore", file, store_authorities)


def _key_pair(settings: Settings, kind: str, file: str | None) -> SealedKeyPair | None:
    chain, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    if chain or key:
        name = "ssl.keystore.key" if key else "ssl.keystore.certificate.chain"
        _require_inline(settings, name, kind, file)
        if not (chain and key):
            raise settings.refused(name, "ssl.keystore.key and ssl.keystore.certificate.chain go together. Set the other, too")
        try:
            return pem_key_pair(chain, key, settings.get("ssl.key.password") or None)
        except ValueError as error:
            raise settings.refused("ssl.keystore.key", str(error)) from None
    if file is None or kind == "PEM":
        return None
    key_password = settings.get("ssl.key.password") or None
    return _from_store(settings, "ssl.keystore", file, lambda content, password: store_key_pair(content, password, key_password))


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
        passwords = [settings.name(f"{prefix}.password"), *([settings.name("ssl.key.password")] if "key" in prefix else [])]
        raise settings.refused(
            f"{prefix}.location", f"{file} cannot be used: {error} ({', '.join(dict.fromkeys(passwords))})"
        ) from None


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


def store_authorities(content: bytes, password: str) -> str:
    """The certificates of a trust store, as PEM. Raises ``ValueError`` that states why there are none."""
    if is_java_store(content):
        certificates = open_java_store(content, password).certificates
    else:
        _key, own, others = _open_store(content, password)
        certificates = _der(*([own] if own is not None else []), *others)
    if not certificates:
        raise ValueError("the store contains no certificate")
    return _pem(certificates)


def store_key_pair(content: bytes, password: str, key_password: str | None = None) -> SealedKeyPair:
    """The first key of a key store with its chain. Raises ``ValueError`` that states what is missing.

    ``key_password`` is for stores whose key has another password than the store, which PKCS12 does not know.
    """
    if is_java_store(content):
        store = open_java_store(content, password)
        if not store.keys or not store.keys[0].chain:
            raise ValueError("the store contains no private key with a certificate")
        first = store.keys[0]
        return _seal(first.private_key(key_password or password), _pem(first.chain).encode())
    key, own, others = _open_store(content, password)
    if key is None or own is None:
        raise ValueError("the store contains no private key with a certificate")
    return _seal(key, _pem(_der(*_chain(own, others))).encode())


def pem_key_pair(chain: str, key: str, password: str | None) -> SealedKeyPair:
    """The same from PEM texts, the key PKCS8 and perhaps encrypted. Raises ``ValueError`` that states what is wrong."""
    secret = password.encode() if password else None
    try:
        private = load_pem_private_key(key.encode(), secret)
    except TypeError:
        # The library's way to say that there is a password too many or too few.
        raise ValueError(f"the key {'needs' if secret is None else 'takes no'} ssl.key.password") from None
    except Exception:  # noqa: BLE001 - the library has a dozen kinds of errors for a bad key; none says more, some repeat it
        raise ValueError("the text is not a private key in PEM form, or ssl.key.password is wrong") from None
    return _seal(private, chain.strip().encode() + b"\n")


def past_expiry(chain: bytes) -> datetime.date | None:
    """The day when the first certificate of a PEM file ended; ``None`` if it has not."""
    try:
        end = x509.load_pem_x509_certificates(chain)[0].not_valid_after_utc
    except ValueError:
        return None
    return end.date() if end < datetime.datetime.now(datetime.UTC) else None


def subject(chain: bytes) -> str | None:
    """The name in the first certificate of a PEM file, as Kafka's default rules make a principal of it."""
    try:
        return x509.load_pem_x509_certificates(chain)[0].subject.rfc4514_string()
    except ValueError:
        return None


@contextlib.contextmanager
def allow_old_serials() -> Iterator[None]:
    """No warning of serial numbers that are not positive: some of Java's own authorities, which users copy, have such."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        yield


def _open_store(content: bytes, password: str) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, list[x509.Certificate]]:
    try:
        with allow_old_serials():
            store = load_pkcs12(content, password.encode() if password else None)
    except Exception:  # noqa: BLE001 - as above: whatever it is, the store cannot be opened with this password
        raise ValueError("the file is not a PKCS12 store, or the password is wrong") from None
    own = store.cert.certificate if isinstance(store.cert, PKCS12Certificate) else None
    return store.key, own, [other.certificate for other in store.additional_certs]


def _chain(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """One's own certificate, who signed it, who signed that: stores have no order, TLS has."""
    chain, left = [own], list(others)
    while above := next((other for other in left if other.subject == chain[-1].issuer), None):
        left.remove(above)
        chain.append(above)
    return chain


def _seal(key: PrivateKeyTypes, chain: bytes) -> SealedKeyPair:
    passphrase = secrets.token_urlsafe(32)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase.encode()))
    return SealedKeyPair(chain=chain, sealed_key=sealed, passphrase=passphrase)


def _der(*certificates: x509.Certificate) -> tuple[bytes, ...]:
    return tuple(certificate.public_bytes(Encoding.DER) for certificate in certificates)


def _pem(certificates: tuple[bytes, ...]) -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates))


_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def local_certificates(tls: Tls) -> tuple[Certificate, ...]:
    """The client's own certificate and the authorities of its trust store, not those of the system. Raises ``OSError``."""
    own = tls.key_pair.chain if tls.key_pair is not None else _content(tls.certificate_file)
    trusted = tls.ca_pem.encode() if tls.ca_pem else _content(tls.ca_file)
    client = _read_each(_PEM.findall(own)[:1], CertificateOwner.CLIENT, x509.load_pem_x509_certificate)
    authorities = _read_each(_PEM.findall(trusted), CertificateOwner.AUTHORITY, x509.load_pem_x509_certificate)
    return (*client, *authorities)


def server_certificates(shown: Mapping[str, bytes]) -> tuple[Certificate, ...]:
    """Those that servers showed, in DER by their addresses."""
    return tuple(
        Certificate(owner=CertificateOwner.SERVER, name=address, ends=certificate.ends)
        for address, content in sorted(shown.items())
        for certificate in _read_each((content,), CertificateOwner.SERVER, x509.load_der_x509_certificate)
    )


def _content(file: str | None) -> bytes:
    return b"" if file is None else Path(file).read_bytes()


def _read_each(
    contents: Iterable[bytes], owner: CertificateOwner, load: Callable[[bytes], x509.Certificate]
) -> Iterator[Certificate]:
    """What cannot be read is left out: OpenSSL decides whether it can be used."""
    for content in contents:
        try:
            with allow_old_serials():
                certificate = load(content)
            yield Certificate(owner=owner, name=certificate.subject.rfc4514_string(), ends=certificate.not_valid_after_utc)
        except ValueError:
            continue
