"""Where the API is, and which addresses belong to it: only those are ever sent the token."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from typing import Final

from reconciler.errors import ForgeError, UsageError
from reconciler.model import escaped

PUBLIC: Final = "https://api.github.com"

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_PORTS: Final = {"https": 443, "http": 80}
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_-]{1,39}/(?!\.\.?$)[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAddress:
    """The base of every request, e.g. ``https://api.github.com`` or ``https://github.example.org/api/v3``."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def on_this_machine(self) -> bool:
        """Whether what is sent there leaves this machine."""
        return self.host in _LOOPBACK

    def url(self, path: str) -> str:
        """The whole address of a path below the base."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}{path}"

    def joined(self, url: str, reference: str) -> str:
        """What a redirection or a link to the next page means, found in the answer from ``url``.

        Raises ``ForgeError`` for an address of another server, which must not be sent the token.
        """
        try:
            target = urllib.parse.urljoin(url, reference)
        except ValueError:
            target = reference
        if _origin(target) != (self.scheme, self.host, self.port):
            shown = escaped(target[:200])
            raise ForgeError(f"{self.url('')} sends us on to another server ({shown}), which is not given the token")
        return target


def api_address(text: str) -> ApiAddress:
    """The address that the user gave. Raises ``UsageError`` for one that is none, or that would carry the token in the clear."""
    parts = _split(text)
    origin = _origin(text)
    if parts is None or origin is None or parts.username is not None or parts.query or parts.fragment or not text.isascii():
        raise UsageError(f"the address of GitHub's API is a URL such as {PUBLIC}, not {escaped(text)!r}")
    scheme, host, port = origin
    if scheme == "http" and host not in _LOOPBACK:
        raise UsageError(f"the address of GitHub's API must begin with https://, or the token can be read on its way: {text}")
    return ApiAddress(scheme=scheme, host=host, port=port, path=parts.path.rstrip("/"))


def repository_name(text: str) -> str:
    """``OWNER/NAME``, checked. Raises ``UsageError``."""
    if not _REPOSITORY.fullmatch(text):
        raise UsageError(f"a repository is OWNER/NAME, not {escaped(text)!r}")
    return text


def _split(text: str) -> urllib.parse.SplitResult | None:
    try:
        return urllib.parse.urlsplit(text)
    except ValueError:
        return None


def _origin(text: str) -> tuple[str, str, int] | None:
    parts = _split(text)
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        return None
    try:
        return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]
    except ValueError:
        return None
