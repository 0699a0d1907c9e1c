"""Java's own key store JKS, as every ``keytool`` reads and writes it.

It is a list of entries behind a keyed digest, and protects keys by a stream of SHA-1 digests: weak by today's measure, so a store
deserves the protection of its file.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key

_JKS: Final = b"\xfe\xed\xfe\xed"
_WHITENER: Final = b"Mighty Aphrodite"
"""What Java mixes into the digest of a store."""
_DIGEST_BYTES: Final = 20
_PRIVATE_KEY: Final = 1
_CERTIFICATE: Final = 2
_OF_JKS: Final = bytes.fromhex("2b060104012a02110101")
_SEQUENCE, _OCTETS, _OID = 0x30, 0x04, 0x06


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedKey:
    """A private key under its own password, and its certificates in DER, one's own first."""

    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...]

    def private_key(self, password: str) -> PrivateKeyTypes:
        """The key. Raises ``ValueError`` that states why there is none."""
        try:
            return load_der_private_key(_reveal(self.protected, password), None)
        except (ValueError, IndexError, struct.error) as error:
            reason = str(error) if isinstance(error, _WrongPasswordError) else "the key cannot be read, or its password is wrong"
            raise ValueError(reason) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaStore:
    """What a store has, in its order. Certificates are as they were written: who uses them decides which are good enough."""

    keys: tuple[ProtectedKey, ...]
    certificates: tuple[bytes, ...]


class _WrongPasswordError(ValueError):
    """A password that does not fit; the text states which."""


def open_java_store(content: bytes, password: str) -> JavaStore | None:
    """Read a store, whatever its configured type; ``None`` for another kind of content.

    Without a password its digest is not checked, as in Java. Raises ``ValueError`` that states what is wrong.
    """
    if not content.startswith(_JKS):
        return None
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if password:
        expected = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise ValueError("the password is wrong, or the file is damaged")
    try:
        return _read_entries(body)
    except (IndexError, struct.error, UnicodeDecodeError):
        raise ValueError("the file is damaged") from None


def _read_entries(body: bytes) -> JavaStore:
    keys: list[ProtectedKey] = []
    certificates: list[bytes] = []
    reader = _StoreBytes(body, 4)
    version, count = reader.number(4), reader.number(4)
    for _ in range(count):
        kind = reader.number(4)
        reader.text()  # the alias
        reader.number(8)  # when it was made
        if kind == _PRIVATE_KEY:
            protected = reader.bytes_of(4)
            chain = tuple(reader.certificate(version) for _ in range(reader.number(4)))
            keys.append(ProtectedKey(protected=protected, chain=chain))
        elif kind == _CERTIFICATE:
            certificates.append(reader.certificate(version))
        else:
            raise ValueError("the file is damaged")
    return JavaStore(keys=tuple(keys), certificates=tuple(certificates))


class _StoreBytes:
    """Takes one part after the other. Raises ``IndexError`` at the end."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self._content = content
        self._at = at

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._content):
            raise IndexError
        part, self._at = self._content[self._at : end], end
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def bytes_of(self, size: int) -> bytes:
        """Bytes behind their number."""
        return self.take(self.number(size))

    def text(self) -> bytes:
        return self.bytes_of(2)

    def certificate(self, version: int) -> bytes:
        if version > 1 and self.text() != b"X.509":
            raise ValueError("the store has a certificate that is not X.509")
        return self.bytes_of(4)

    def der(self, tag: int) -> bytes:
        """The content of one value of ASN.1 in DER."""
        if self.number(1) != tag:
            raise ValueError("the key has another form")
        length = self.number(1)
        return self.take(self.number(length & 0x7F) if length & 0x80 else length)


def _reveal(protected: bytes, password: str) -> bytes:
    """The key in an EncryptedPrivateKeyInfo (RFC 5208)."""
    whole = _StoreBytes(_StoreBytes(protected).der(_SEQUENCE))
    if _StoreBytes(whole.der(_SEQUENCE)).der(_OID) != _OF_JKS:
        raise ValueError("the key is hidden by a method that keytool does not use")
    hidden = whole.der(_OCTETS)
    salt, body, check = hidden[:_DIGEST_BYTES], hidden[_DIGEST_BYTES:-_DIGEST_BYTES], hidden[-_DIGEST_BYTES:]
    secret = password.encode("utf-16-be")
    stream, digest = b"", salt
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(left ^ right for left, right in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise _WrongPasswordError("the key has another password than the store")
    return plain
