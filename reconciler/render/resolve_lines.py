"""Many answers as JSON, one a line, without a tree of objects for each: text is put together from parts that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from reconciler.formats import FORMAT_VERSION, value_to_json
from reconciler.model import OTHER, ClientName, Entity, Known, KnownClient
from reconciler.render.resolve_document import list_head, resolution_to_json
from reconciler.resolution import (
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    Answers,
    Candidate,
    Doubts,
    NameMatch,
    QuotaView,
    Resolution,
    Wanted,
)

_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_VERSION: Final = f'{{"format_version":{_COMPACT.encode(FORMAT_VERSION)},'
_text: Final = json.JSONEncoder(ensure_ascii=True).encode
_ANY_USER: Final = '"user":null'
_ANY_CLIENT: Final = '"client-id":null'
_SOURCES: Final = tuple(
    ",".join(
        text
        for match, name, default in ((level.user, "{user}", _ANY_USER), (level.client_id, "{client_id}", _ANY_CLIENT))
        if (text := {NameMatch.NAME: name, NameMatch.DEFAULT: default, NameMatch.ABSENT: ""}[match])
    )
    for level in CLIENT_PRECEDENCE
)
"""By level, a template for what sets a limit there, of the client's own tags."""
_NO_DOUBTS: Final = Doubts()


def answer_lines(
    answers: Answers, asked: Iterable[tuple[Entity, Known]], wanted: Wanted, *, seen: Callable[[Resolution], None]
) -> Iterator[str]:
    """JSON lines, one an entity, in their order; each is an answer with ``format_version``.

    ``seen`` gets every answer of which something may be unknown.
    """
    quick = _Quick(answers, include_overrides=wanted.include_overrides)
    only_numbers = not wanted.explain and not wanted.members and answers.doubts == _NO_DOUBTS
    for entity, client in asked:
        if only_numbers and isinstance(client, KnownClient):
            yield _VERSION + quick.rest(entity, client)
        else:
            resolution = answers.answer(entity, wanted)
            seen(resolution)
            yield _VERSION + _COMPACT.encode(resolution_to_json(resolution))[1:] + "\n"


def list_document(view: QuotaView, lines: Iterable[str]) -> Iterator[str]:
    """One document of the lines of ``answer_lines``: ``resolutions`` is its last field."""
    yield _COMPACT.encode(list_head(view))[:-1] + ',"resolutions":['
    before = "\n{"
    for one in lines:
        yield before + one[len(_VERSION) : -1]
        before = ",\n{"
    yield "\n]}\n"


class _Quick:
    """The rest of a line for a client. What wins at a level bears the client's own names, so its text is made of theirs."""

    def __init__(self, answers: Answers, *, include_overrides: bool) -> None:
        self._keys = [(f'"{key}":{{"value":', resolver.winner, resolver.hidden) for key, resolver in answers.resolvers.items()]
        self._include_overrides = include_overrides
        self._numbers: dict[float, str] = {}

    def rest(self, entity: Entity, client: KnownClient) -> str:
        user, client_id = client.user, client.client_id
        of_user, of_client = _tag("user", user), _tag("client-id", client_id)
        found = []
        last, tail = 0, ""
        for key, winner_of, hidden_by in self._keys:
            winner = winner_of(user, client_id)
            if winner is None:
                continue
            if winner.level != last:
                last = winner.level
                tail = _tail(last, of_user, of_client)
            number = self._numbers.get(winner.value) or self._number(winner.value)
            if self._include_overrides:
                hidden = [self._hidden(one, of_user, of_client) for one in hidden_by(user, client_id, winner)]
                found.append(f'{key}{number}{tail},"overridden":[{",".join(hidden)}]}}')
            else:
                found.append(f"{key}{number}{tail}}}")
        names = entity.parts
        asked = f"{of_user},{of_client}" if len(names) == 2 else of_user if names[0][0] == "user" else of_client
        return f'"entity":{{{asked}}},"quotas":{{{",".join(found)}}}}}\n'

    def _hidden(self, one: Candidate, user: str, client_id: str) -> str:
        number = self._numbers.get(one.value) or self._number(one.value)
        return f'{{"entity":{{{_source(one.level, user, client_id)}}},"value":{number},"level":{one.level}}}'

    def _number(self, value: float) -> str:
        known = value_to_json(value)
        text = self._numbers[value] = f'"{known}"' if isinstance(known, str) else repr(known)
        return text


def _tail(level: int, user: str, client_id: str) -> str:
    """Of a limit, what follows the value, up to its bucket; ``user`` and ``client_id`` are the client's own tags."""
    return f',"source":{{{_source(level, user, client_id)}}},"level":{level},"bucket":{{{_bucket(level, user, client_id)}}}'


def _source(level: int, user: str, client_id: str) -> str:
    return _SOURCES[level - 1].format(user=user, client_id=client_id)


def _bucket(level: int, user: str, client_id: str) -> str:
    if level in USER_LEVELS:
        return user
    return client_id if level in CLIENT_LEVELS else f"{user},{client_id}"


def _tag(tag: str, name: ClientName) -> str:
    return f'"{tag}":null' if name is OTHER else f'"{tag}":{_text(name)}'
