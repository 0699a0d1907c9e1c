"""Java's own key stores, JKS and JCEKS, as every ``keytool`` reads and writes them.

Both are a list of entries behind a keyed digest. JKS protects keys by a stream of SHA-1 digests, JCEKS by DES in triple with
a key of MD5 digests: weak by today's measure, so a store deserves the protection of its file. Secret keys, which JCEKS can have
too, are Java objects and are refused.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.serialization import load_der_private_key

_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"
_WHITENER: Final = b"Mighty Aphrodite"
"""What Java mixes into the digest of a store."""
_DIGEST_BYTES: Final = 20
_PRIVATE_KEY: Final = 1
_CERTIFICATE: Final = 2
_OF_JKS: Final = bytes.fromhex("2b060104012a02110101")
_OF_JCEKS: Final = bytes.fromhex("2b060104012a021301")
_SEQUENCE, _INTEGER, _OCTETS, _OID = 0x30, 0x02, 0x04, 0x06
_MOST_ROUNDS: Final = 5_000_000
_BLOCK_BYTES: Final = 8


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


def is_java_store(content: bytes) -> bool:
    """True for the content of a JKS or JCEKS store, whatever its name and configured type: Java reads either as the other."""
    return content.startswith((_JKS, _JCEKS))


def open_java_store(content: bytes, password: str) -> JavaStore:
    """Read a store. Without a password its digest is not checked, as in Java. Raises ``ValueError`` that states what is wrong."""
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
            raise ValueError(
                "the store has a secret key, which only Java can read. Export the other entries into a store of their own"
            )
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
    algorithm, parameters, hidden = _protection(protected)
    if algorithm == _OF_JKS:
        return _reveal_jks(hidden, password)
    if algorithm == _OF_JCEKS:
        return _reveal_jceks(parameters, hidden, password)
    raise ValueError("the key is hidden by a method that keytool does not use")


def _protection(protected: bytes) -> tuple[bytes, bytes, bytes]:
    """Algorithm, parameters and content of an EncryptedPrivateKeyInfo (RFC 5208)."""
    whole = _StoreBytes(_StoreBytes(protected).der(_SEQUENCE))
    method = whole.der(_SEQUENCE)
    hidden = whole.der(_OCTETS)
    reader = _StoreBytes(method)
    algorithm = reader.der(_OID)
    return algorithm, method[len(algorithm) + 2 :], hidden


def _reveal_jks(hidden: bytes, password: str) -> bytes:
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


def _reveal_jceks(parameters: bytes, hidden: bytes, password: str) -> bytes:
    reader = _StoreBytes(_StoreBytes(parameters).der(_SEQUENCE))
    salt, rounds = reader.der(_OCTETS), int.from_bytes(reader.der(_INTEGER), "big")
    if len(salt) != _BLOCK_BYTES or not 0 < rounds <= _MOST_ROUNDS:
        raise ValueError("the key has another form")
    secret, derived = password.encode(), b""
    for half in (salt[:4], salt[4:]):
        digest = half
        for _ in range(rounds):
            digest = hashlib.md5(digest + secret, usedforsecurity=False).digest()
        derived += digest
    decryptor = Cipher(TripleDES(derived[:24]), CBC(derived[24:])).decryptor()
    padded = decryptor.update(hidden) + decryptor.finalize()
    padding = padded[-1] if padded else 0
    if not 0 < padding <= _BLOCK_BYTES or padded[-padding:] != bytes([padding]) * padding:
        raise _WrongPasswordError("the key has another password than the store")
    return padded[:-padding]
