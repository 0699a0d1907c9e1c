"""Many answers as JSON, one a line, without a tree of objects for each: text is put together from parts that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from reconciler.formats.canonical import FORMAT_VERSION, value_to_json
from reconciler.model.effect import OTHER, ClientName, Known, KnownClient
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.render.resolve_document import list_head, resolution_to_json
from reconciler.resolution.answers import Answers, Doubts, Resolution, Wanted
from reconciler.resolution.levels import CLIENT_LEVELS, USER_LEVELS, Candidate
from reconciler.resolution.views import QuotaView

_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_VERSION: Final = f'{{"format_version":{_COMPACT.encode(FORMAT_VERSION)},'
_text: Final = json.JSONEncoder(ensure_ascii=True).encode
_PLAIN: Final = Wanted()
_NO_DOUBTS: Final = Doubts()


def answer_lines(
    answers: Answers, asked: Iterable[tuple[Entity, Known]], wanted: Wanted, *, seen: Callable[[Resolution], None]
) -> Iterator[str]:
    """JSON lines, one an entity, in their order; each is an answer with ``format_version``.

    ``seen`` gets every answer of which something may be unknown.
    """
    quick = _Quick(answers)
    only_numbers = wanted == _PLAIN and answers.doubts == _NO_DOUBTS
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
    """The rest of a line for a client, made of parts that are kept."""

    def __init__(self, answers: Answers) -> None:
        self._keys = [(f'"{key}":', resolver.winner) for key, resolver in answers.resolvers.items()]
        self._limits: dict[int, tuple[Candidate, str]] = {}

    def rest(self, entity: Entity, client: KnownClient) -> str:
        user, client_id = client.user, client.client_id
        found = []
        user_tag = client_tag = None
        for key, winner_of in self._keys:
            winner = winner_of(user, client_id)
            if winner is None:
                continue
            level = winner.level
            known = self._limits.get(id(winner))
            limit = known[1] if known is not None else self._keep(winner)
            if user_tag is None:
                user_tag, client_tag = _tag("user", user), _tag("client-id", client_id)
            if level in USER_LEVELS or client_id == "":
                found.append(f"{key}{limit}{user_tag}}}}}")
            elif level in CLIENT_LEVELS:
                found.append(f"{key}{limit}{client_tag}}}}}")
            else:
                found.append(f"{key}{limit}{user_tag},{client_tag}}}}}")
        return f'"entity":{_entity(entity)},"quotas":{{{",".join(found)}}}}}\n'

    def _keep(self, winner: Candidate) -> str:
        text = f'{{"value":{_number(winner.value)},"source":{_entity(winner.entity)},"level":{winner.level},"bucket":{{'
        # The winner is kept too, so that no other one can get its id.
        self._limits[id(winner)] = (winner, text)
        return text


def _number(value: float) -> str:
    known = value_to_json(value)
    return f'"{known}"' if isinstance(known, str) else repr(known)


def _tag(tag: str, name: ClientName) -> str:
    return f'"{tag}":null' if name is OTHER else f'"{tag}":{_text(name)}'


def _entity(entity: Entity) -> str:
    parts = entity.parts
    if len(parts) == 1:
        return "{" + _name(*parts[0]) + "}"
    return "{" + ",".join([_name(kind, name) for kind, name in parts]) + "}"


def _name(kind: str, name: EntityName) -> str:
    return f'"{kind}":null' if name is DEFAULT else f'"{kind}":{_text(name)}'
