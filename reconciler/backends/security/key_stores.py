"""Keys and certificates that Python's ``ssl`` cannot read by itself: PKCS12 stores, and PEM text inside a properties file."""

from __future__ import annotations

import datetime
import secrets
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, load_pkcs12

from reconciler.backends.security.tls import SealedKeyPair

_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How JKS and JCEKS stores begin."""


def is_java_store(content: bytes) -> bool:
    """Whether a file is a JKS or JCEKS store, whatever its name or type says; Java itself takes either for the other."""
    return content.startswith(_JKS)


def pkcs12_authorities(content: bytes, password: str) -> str:
    """The certificates of a trust store, as PEM. Raises ``ValueError`` that says why there are none."""
    _key, own, others = _open_store(content, password)
    found = [*([own] if own is not None else []), *others]
    if not found:
        raise ValueError("it contains no certificate")
    return _pem(found).decode("ascii")


def pkcs12_key_pair(content: bytes, password: str) -> SealedKeyPair:
    """The one key of a key store with its chain. Raises ``ValueError`` that says what is missing."""
    key, own, others = _open_store(content, password)
    if key is None or own is None:
        raise ValueError("it contains no private key with a certificate")
    return _seal(key, _pem(_chain(own, others)))


def pem_key_pair(chain: str, key: str, password: str | None) -> SealedKeyPair:
    """The same from PEM texts, the key PKCS8 and perhaps encrypted. Raises ``ValueError`` that says what is wrong."""
    secret = password.encode() if password else None
    try:
        private = load_pem_private_key(key.encode(), secret)
    except TypeError:
        # The library's way to say that there is a password too many or too few.
        raise ValueError("the key needs ssl.key.password" if secret is None else "the key takes no ssl.key.password") from None
    except Exception:  # noqa: BLE001 - the library has a dozen kinds of errors for a bad key; none says more, some repeat it
        raise ValueError("it is not a private key in PEM form, or ssl.key.password is wrong") from None
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


def _open_store(content: bytes, password: str) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, list[x509.Certificate]]:
    try:
        store = load_pkcs12(content, password.encode() if password else None)
    except Exception:  # noqa: BLE001 - as above: whatever it is, the store cannot be opened with this password
        raise ValueError("it is not a PKCS12 store, or its password is wrong") from None
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


def _pem(certificates: list[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)
