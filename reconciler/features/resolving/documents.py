"""Effective quotas as documents: one answer, and a list.

A key that is neither in ``quotas`` nor in ``unknown`` is unlimited. In a bucket, and in an entity that is asked about, ``null``
is any name that no quota names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.formats import FORMAT_VERSION, value_to_json
from reconciler.model import OTHER, ClientName, Entity, Known, KnownClient
from reconciler.resolution import (
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    Candidate,
    Caveats,
    EffectiveQuotas,
    KeyAnswer,
    NameMatch,
    QuotaView,
    Resolution,
    ResolveOptions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveAnswer:
    """The limits of one client in a state."""

    view: QuotaView
    resolution: Resolution
    more_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what the answer covers and what it does not."""
        return (*self.view.notes, *self.more_notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveList:
    """The limits of many clients in a state."""

    view: QuotaView
    notes: tuple[str, ...]
    """Sentences for people about what the answers cover and what they do not."""
    resolutions: tuple[Resolution, ...] = ()
    """One answer for each client."""


_CODEC: Final = VALUES.extended(
    {
        KeyAnswer: row("value source level bucket profile? declared=unit? expiry? overridden? shared_with?"),
        QuotaView: row("state=kind cluster observed"),
        Resolution: row("entity quotas unknown? ladder?"),
        ResolveAnswer: row("*view *resolution notes"),
        ResolveList: row("*view notes resolutions"),
    }
)
RESOLVE: Final = Document(cls=ResolveAnswer, name="resolve", title="kafka-quotas resolve", codec=_CODEC)
RESOLVE_LINE: Final = Document(cls=Resolution, name="resolve-line", title="kafka-quotas resolve --format jsonl", codec=_CODEC)
RESOLVE_LIST: Final = Document(cls=ResolveList, name="resolve-list", title="kafka-quotas resolve, many clients", codec=_CODEC)


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
_NO_CAVEATS: Final = Caveats()


def answer_json_lines(
    answers: EffectiveQuotas, asked: Iterable[tuple[Entity, Known]], wanted: ResolveOptions, *, seen: Callable[[Resolution], None]
) -> Iterator[str]:
    """JSON lines, one an entity, in their order; each is an answer with ``format_version``.

    ``seen`` gets every answer of which something may be unknown.
    """
    quick = _Writer(answers, include_overrides=wanted.include_overrides)
    only_numbers = not wanted.explain and not wanted.members and answers.caveats == _NO_CAVEATS
    for entity, client in asked:
        if only_numbers and isinstance(client, KnownClient):
            yield _VERSION + quick.rest(entity, client)
        else:
            resolution = answers.answer(entity, wanted)
            seen(resolution)
            yield _VERSION + _COMPACT.encode(_CODEC.row(Resolution).write(resolution))[1:] + "\n"


def answer_list_chunks(view: QuotaView, lines: Iterable[str]) -> Iterator[str]:
    """One document of the lines of ``answer_json_lines``: ``resolutions`` is its last field."""
    head = RESOLVE_LIST.write(ResolveList(view=view, notes=view.notes))
    del head["resolutions"]
    yield _COMPACT.encode(head)[:-1] + ',"resolutions":['
    before = "\n{"
    for line in lines:
        yield before + line[len(_VERSION) : -1]
        before = ",\n{"
    yield "\n]}\n"


class _Writer:
    """The rest of a line for a client. What wins at a level bears the client's own names, so its text is made of theirs."""

    def __init__(self, answers: EffectiveQuotas, *, include_overrides: bool) -> None:
        self._keys = [(f'"{key}":{{"value":', resolver.winner, resolver.hidden) for key, resolver in answers.resolvers.items()]
        self._include_overrides = include_overrides
        self._numbers: dict[float, str] = {}

    def rest(self, entity: Entity, client: KnownClient) -> str:
        user, client_id = client.user, client.client_id
        of_user, of_client = _tag("user", user), _tag("client-id", client_id)
        members = []
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
                hidden = [self._hidden(candidate, of_user, of_client) for candidate in hidden_by(user, client_id, winner)]
                members.append(f'{key}{number}{tail},"overridden":[{",".join(hidden)}]}}')
            else:
                members.append(f"{key}{number}{tail}}}")
        names = entity.parts
        asked = f"{of_user},{of_client}" if len(names) == 2 else of_user if names[0][0] == "user" else of_client
        return f'"entity":{{{asked}}},"quotas":{{{",".join(members)}}}}}\n'

    def _hidden(self, candidate: Candidate, user: str, client_id: str) -> str:
        number = self._numbers.get(candidate.value) or self._number(candidate.value)
        return f'{{"entity":{{{_source(candidate.level, user, client_id)}}},"value":{number},"level":{candidate.level}}}'

    def _number(self, value: float) -> str:
        known = value_to_json(value)
        text = self._numbers[value] = f'"{known}"' if isinstance(known, str) else repr(known)
        return text


def _tail(level: int, user: str, client_id: str) -> str:
    """Return the JSON of a limit after its value, up to its bucket; ``user`` and ``client_id`` are the client's own tags."""
    source, bucket = _source(level, user, client_id), _bucket_text(level, user, client_id)
    return f',"source":{{{source}}},"level":{level},"bucket":{{{bucket}}}'


def _source(level: int, user: str, client_id: str) -> str:
    return _SOURCES[level - 1].format(user=user, client_id=client_id)


def _bucket_text(level: int, user: str, client_id: str) -> str:
    if level in USER_LEVELS:
        return user
    return client_id if level in CLIENT_LEVELS else f"{user},{client_id}"


def _tag(tag: str, name: ClientName) -> str:
    return f'"{tag}":null' if name is OTHER else f'"{tag}":{_text(name)}'
