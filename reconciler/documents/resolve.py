"""Effective quotas as JSON documents: one answer (``schemas/resolve.v1.schema.json``), a list, and two states compared.

An answer is ``{entity, quotas: {key: {value, source, level, bucket, overridden?, shared_with?}}, unknown?: {key: reason},
ladder?}``; a key that is in neither is unlimited. In a bucket, and in an entity that is asked about, ``null`` is any name that no
quota names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from reconciler.documents.expiry import expiry_to_json
from reconciler.documents.units import unit_to_json
from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, entity_to_json, moment_to_json, value_to_json
from reconciler.model import OTHER, ClientName, Effect, Entity, Known, KnownAddress, KnownClient, Limit
from reconciler.resolution import (
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    Candidate,
    Caveats,
    ClientDifference,
    EffectiveQuotas,
    KeyAnswer,
    NameMatch,
    QuotaView,
    Resolution,
    ResolveOptions,
    Rung,
    Tags,
    ViewComparison,
    tags_of,
    tags_of_address,
)

SCHEMA: Final = "resolve"
_FORMAT_VERSION: Final = "1.1"
"""Of answers and lists. 1.1 added the field ``expiry``."""

_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_VERSION: Final = f'{{"format_version":{_COMPACT.encode(_FORMAT_VERSION)},'
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


def resolution_to_json(view: QuotaView, resolution: Resolution, notes: Sequence[str]) -> dict[str, Json]:
    """The document of ``resolve.v1`` for one client; ``notes`` come after those of the state."""
    answer = answer_to_json(resolution)
    return {
        "format_version": _FORMAT_VERSION,
        **_view_to_json(view),
        "entity": answer.pop("entity"),
        "quotas": answer.pop("quotas"),
        "unknown": answer.pop("unknown", {}),
        **answer,
        "notes": [*view.notes, *notes],
    }


def _list_head(view: QuotaView) -> dict[str, Json]:
    """A list's document without its last field, ``resolutions``."""
    return {"format_version": _FORMAT_VERSION, **_view_to_json(view), "notes": list(view.notes)}


def answer_to_json(resolution: Resolution) -> dict[str, Json]:
    """One answer; ``unknown`` only when there is something in it, ``ladder`` only when it was asked for."""
    document: dict[str, Json] = {
        "entity": entity_to_json(resolution.entity),
        "quotas": {key: _key_to_json(answer) for key, answer in resolution.quotas.items()},
    }
    if resolution.unknown:
        document["unknown"] = dict(resolution.unknown)
    if resolution.ladder is not None:
        document["ladder"] = {key: [_rung_to_json(rung) for rung in rungs] for key, rungs in resolution.ladder.items()}
    return document


def comparison_to_json(compared: ViewComparison) -> dict[str, Json]:
    """The document of two states with the clients whose limits differ, each key with its value before and after."""
    comparison = compared.comparison
    return {
        "format_version": FORMAT_VERSION,
        "before": _view_to_json(compared.before),
        "after": _view_to_json(compared.after),
        "unknown": comparison.unknown,
        "differences": [_compared_to_json(client) for client in comparison.clients],
        "summary": {"asked": compared.asked, "differing": len(comparison.clients), "left_out": comparison.left_out},
        "notes": list(compared.notes),
    }


def _view_to_json(view: QuotaView) -> dict[str, Json]:
    observed = view.observed
    return {
        "state": view.kind.value,
        "cluster": cluster_to_json(view.cluster),
        "observed": None if observed is None else {"at": moment_to_json(observed.at), "from": observed.origin.value},
    }


def _key_to_json(answer: KeyAnswer) -> dict[str, Json]:
    document: dict[str, Json] = {
        "value": value_to_json(answer.value),
        "source": entity_to_json(answer.source),
        "level": answer.level,
        "bucket": _bucket(answer.bucket),
    }
    if answer.profile is not None:
        document["profile"] = answer.profile
    if answer.unit is not None:
        document["declared"] = unit_to_json(answer.unit)
    document |= expiry_to_json(answer.expiry)
    if answer.overridden is not None:
        document["overridden"] = [
            {"entity": entity_to_json(limit.entity), "value": value_to_json(limit.value), "level": limit.level}
            for limit in answer.overridden
        ]
    if answer.shared_with is not None:
        clients: Iterable[Json] = (entity_to_json(entity) for entity in answer.shared_with.clients)
        document["shared_with"] = {"clients": list(clients), "more": answer.shared_with.more}
    return document


def _rung_to_json(rung: Rung) -> dict[str, Json]:
    entity = None if rung.entity is None else entity_to_json(rung.entity)
    value = None if rung.value is None else value_to_json(rung.value)
    return {"level": rung.level, "entity": entity, "value": value, "status": rung.status.value}


def _compared_to_json(compared: ClientDifference) -> dict[str, Json]:
    document: dict[str, Json] = {
        "entity": entity_to_json(compared.entity),
        "keys": {
            effect.key: {
                "before": _limit_to_json(effect, effect.before),
                "after": _limit_to_json(effect, effect.after),
                "direction": effect.direction.value,
            }
            for effect in compared.effects
        },
    }
    if compared.unknown:
        document["unknown"] = dict(compared.unknown)
    return document


def _limit_to_json(effect: Effect, limit: Limit | None) -> Json:
    if limit is None:
        return None
    client = effect.client
    tags = tags_of_address(client) if isinstance(client, KnownAddress) else tags_of(client, limit.level)
    return {
        "value": value_to_json(limit.value),
        "source": entity_to_json(limit.entity),
        "level": limit.level,
        "bucket": _bucket(tags),
    }


def _bucket(tags: Tags) -> dict[str, Json]:
    return {**tags}


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
            yield _VERSION + _COMPACT.encode(answer_to_json(resolution))[1:] + "\n"


def answer_list_chunks(view: QuotaView, lines: Iterable[str]) -> Iterator[str]:
    """One document of the lines of ``answer_json_lines``: ``resolutions`` is its last field."""
    yield _COMPACT.encode(_list_head(view))[:-1] + ',"resolutions":['
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
    """Of a limit, what follows the value, up to its bucket; ``user`` and ``client_id`` are the client's own tags."""
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
