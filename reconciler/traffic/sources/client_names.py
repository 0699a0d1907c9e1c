r"""Names of clients in metrics: how tags have them, and known names to read back those that an exporter mangled.

In a tag, users are percent-encoded and client-ids quoted. Sources: Kafka's ``Sanitizer`` (``sanitize``, and ``jmxSanitize`` with
``[\w-%\. \t]*``), Java's ``ObjectName.quote`` and ``URLEncoder``.

The KRaft example of the jmx_exporter makes ``kafka_server_produce_user_alice_client_id_app_byte_rate`` of user ``alice`` and
client-id ``app``. Case, special characters and the border between the two names are lost there. The names of known clients are
mangled the same way and compared.
"""

from __future__ import annotations

import re
import urllib.parse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from reconciler.resolution import mangle, quote_client_id

_QUOTED: Final = re.compile(r'"(?:[^"\\*?\n]|\\[\\"*?n])*"', re.DOTALL)
_ESCAPES: Final = re.compile(r"\\([\\\"*?n])")


def encode_user(user: str) -> str:
    """The user of a tag, as ``Sanitizer.sanitize`` writes it."""
    return urllib.parse.quote(user, safe="", errors="replace").replace("~", "%7E")


def decode_user(text: str) -> str:
    """The user of a tag or label."""
    return urllib.parse.unquote(text, errors="replace")


def unquote_client_id(text: str) -> str:
    """The client-id of a label. Text that ``ObjectName.quote`` cannot have made is the client-id itself."""
    if not _QUOTED.fullmatch(text):
        return text
    return _ESCAPES.sub(lambda match: "\n" if match[1] == "n" else match[1], text[1:-1])


_MOST_CANDIDATES: Final = 2
"""More need not be looked for: two are not one."""
_BORDER: Final = re.compile(r"_client_id(?=_|$)")

ClientName = tuple[str | None, str | None]
"""User and client-id; ``None``: not in the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientNames:
    """Names of users and client-ids. Each user may use each client-id."""

    users: frozenset[str] = frozenset()
    client_ids: frozenset[str] = frozenset()

    def __or__(self, other: ClientNames) -> ClientNames:
        return ClientNames(users=self.users | other.users, client_ids=self.client_ids | other.client_ids)


@dataclass(slots=True)
class NameIndex:
    """Known names by what a metric name keeps of them; it grows while series are read."""

    _users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _client_ids: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, known: ClientNames) -> NameIndex:
        """The index of these names."""
        index = cls()
        index.add(known.users, known.client_ids)
        return index

    def add(self, users: Iterable[str], client_ids: Iterable[str]) -> None:
        """More known names. An empty name is in no metric name."""
        for user in users:
            if user:
                self._users[_key(encode_user(user))].add(user)
        for client_id in client_ids:
            if client_id:
                self._client_ids[_key(quote_client_id(client_id))].add(client_id)

    def candidates(self, body: str) -> tuple[ClientName, ...]:
        """Known clients that ``body``, the middle of a metric name, can stand for; at most two, since two do not decide.

        ``body`` begins with ``user`` or ``client_id``.
        """
        names: list[ClientName] = []
        for name in self._candidates(mangle(body)):
            if name not in names:
                names.append(name)
            if len(names) == _MOST_CANDIDATES:
                break
        return tuple(names)

    def _candidates(self, body: str) -> Iterator[ClientName]:
        if match := re.fullmatch(r"client_id(?:_(.*))?", body):
            yield from ((None, client_id) for client_id in self._named(self._client_ids, match[1]))
        if not (match := re.fullmatch(r"user(?:_(.*))?", body)):
            return
        yield from ((user, None) for user in self._named(self._users, match[1]))
        for border in _BORDER.finditer(body):
            for user in self._named(self._users, body[len("user") : border.start()]):
                for client_id in self._named(self._client_ids, body[border.end() :]):
                    yield user, client_id

    @staticmethod
    def _named(names: dict[str, set[str]], mangled: str | None) -> list[str]:
        return sorted(names.get(_key(mangled or ""), ()))


def _key(text: str) -> str:
    """Runs of ``_`` at the ends merge with their neighbours in a metric name."""
    return mangle(text).strip("_")
