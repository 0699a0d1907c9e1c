"""Certificates and private keys: opened from key and trust stores, and sealed. Loaded only for TLS."""

from __future__ import annotations

import contextlib
import datetime
import secrets
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, load_pkcs12
from cryptography.utils import CryptographyDeprecationWarning

from reconciler.backends.security.tls import SealedKeyPair

_OF_JAVA_ALONE: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How stores in JKS and JCEKS begin. Since Java 9, ``keytool`` writes PKCS12, also under the name JKS."""


def store_authorities(content: bytes, password: str) -> str:
    """The certificates of a trust store, as PEM. Raises ``ValueError`` that states why there are none."""
    _key, own, others = _open_store(content, password)
    certificates = [*([own] if own is not None else []), *others]
    if not certificates:
        raise ValueError("the store contains no certificate")
    return _pem(certificates)


def store_key_pair(content: bytes, password: str) -> SealedKeyPair:
    """The key of a key store with its chain. Raises ``ValueError`` that states what is missing."""
    key, own, others = _open_store(content, password)
    if key is None or own is None:
        raise ValueError("the store contains no private key with a certificate")
    return _seal(key, _pem(_chain(own, others)).encode())


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
    if content.startswith(_OF_JAVA_ALONE):
        raise ValueError(
            "the file is a JKS or JCEKS store. Convert it with keytool -importkeystore -srckeystore OLD -destkeystore NEW "
            "-deststoretype PKCS12, and name the new file"
        )
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


def _pem(certificates: Sequence[x509.Certificate]) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
