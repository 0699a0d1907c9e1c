"""The client's side of SASL DIGEST-MD5 (RFC 2831), quality of protection ``auth``: what ZooKeeper's servers offer. Pure.

The digest protects a password from who listens, not well by today's measure: over untrusted networks TLS has to.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

_DIRECTIVE: Final = re.compile(rb'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,\s]*))\s*(?:,|$)', re.DOTALL)
_COUNT: Final = b"00000001"


class DigestError(ValueError):
    """The server does not do what the mechanism asks of it; the text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestAnswer:
    """``token`` is for the server; ``expected`` is how it proves that it knows the password too."""

    token: bytes = field(repr=False)
    expected: bytes = field(repr=False)

    def check(self, proof: bytes) -> None:
        """Raise ``DigestError`` when the server's last token proves nothing."""
        if not hmac.compare_digest(_directives(proof).get("rspauth", b""), self.expected):
            raise DigestError("it does not prove that it knows the password")


def digest_answer(challenge: bytes, *, username: str, password: str, uri: str, cnonce: str) -> DigestAnswer:
    """The answer to the server's first token. ``uri``: ``service/host``; ``cnonce``: a fresh random text. Raises DigestError."""
    said = _directives(challenge)
    if "nonce" not in said or b"md5-sess" not in said.get("algorithm", b""):
        raise DigestError("it does not begin a login with DIGEST-MD5")
    if b"auth" not in [offer.strip() for offer in said.get("qop", b"auth").split(b",")]:
        raise DigestError("it insists on encrypting the connection with DIGEST-MD5")
    realm, nonce = said.get("realm", b""), said["nonce"]
    # A server without UTF-8 has Latin-1; and what Latin-1 can say is hashed as such by one with UTF-8 too.
    encoding = "utf-8" if said.get("charset", b"").lower() == b"utf-8" else "latin-1"
    secret = b":".join((_hashed(username), _hashed(realm.decode(encoding)), _hashed(password)))
    a1 = b":".join((_md5(secret).digest(), nonce, cnonce.encode("ascii")))

    def response(method: bytes) -> bytes:
        a2 = _md5(method + b":" + uri.encode()).hexdigest().encode()
        parts = (_md5(a1).hexdigest().encode(), nonce, _COUNT, cnonce.encode("ascii"), b"auth", a2)
        return _md5(b":".join(parts)).hexdigest().encode()

    directives = (
        *((b"charset=utf-8",) if encoding == "utf-8" else ()),
        b"username=" + _quoted(username.encode(encoding)),
        b"realm=" + _quoted(realm),
        b"nonce=" + _quoted(nonce),
        b"nc=" + _COUNT,
        b"cnonce=" + _quoted(cnonce.encode("ascii")),
        b"digest-uri=" + _quoted(uri.encode()),
        b"response=" + response(b"AUTHENTICATE"),
        b"qop=auth",
    )
    return DigestAnswer(token=b",".join(directives), expected=response(b""))


def _directives(token: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    at = 0
    while at < len(token):
        match = _DIRECTIVE.match(token, at)
        if match is None:
            raise DigestError("its token cannot be read")
        value = match[3] if match[2] is None else re.sub(rb"\\(.)", rb"\1", match[2], flags=re.DOTALL)
        found[match[1].decode("ascii").lower()] = value
        at = match.end()
    return found


def _hashed(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _quoted(value: bytes) -> bytes:
    return b'"' + re.sub(rb'(["\\])', rb"\\\1", value) + b'"'


def _md5(data: bytes) -> hashlib._Hash:
    # The mechanism's choice; the flag lets it work where the system forbids MD5 for other uses.
    return hashlib.md5(data, usedforsecurity=False)
