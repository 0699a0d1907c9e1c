"""The effects of a plan: which known clients move to other limits, also those that a file names."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from reconciler.collector import pause_collector
from reconciler.errors import FileAccessError
from reconciler.model import (
    DEFAULT,
    NOT_ASKED,
    Change,
    ClusterSpec,
    CurrentState,
    Effect,
    Entity,
    EntityName,
    Known,
    Plan,
    PlanEffects,
    compose,
    display_name,
    escaped,
)
from reconciler.planning import quotas_after
from reconciler.resolution import GROUP_CALLBACK, GroupedQuotas, client_of, effects_between, unclear_effects
from reconciler.text import shown
from reconciler.workflows.connect import with_facts


def with_effects(
    plan: Plan,
    current: CurrentState,
    *,
    source: object,
    spec: ClusterSpec | None = None,
) -> Plan:
    """The plan with its effects on the clients that its entities name.

    ``source`` is what ``current`` was read from: when it can know that the brokers resolve quotas with code of their own, the
    effects are unknown. Where it cannot, the callback of ``spec`` counts.
    """
    current = with_facts(current, source)
    callback: str | None = current.cluster.quota_callback
    notes = _assumed(current.callback_unknown)
    if notes and spec is not None and spec.brokers.callback is not None:
        callback = spec.brokers.callback.name
    before, changed = current.entities, quotas_after(current.entities, plan.changes)
    if callback == GROUP_CALLBACK:
        notes = (compose("Effects on members of a group show its limit, which they share. Members by a prefix are not listed."),)
        before, changed = GroupedQuotas(before).quotas, GroupedQuotas(changed).quotas
    elif callback is not None:
        reason = (
            f"the brokers resolve quotas with their own client.quota.callback.class, {display_name(callback)}. "
            "The limit of a client is not known"
        )
        return replace(plan, effects=PlanEffects(unknown=reason))
    effects = effects_between(before, changed)
    if earlier := tuple(_as_before(plan.changes)):
        alone = quotas_after(current.entities, earlier)
        alone = GroupedQuotas(alone).quotas if callback == GROUP_CALLBACK else alone
        effects = _marked(effects, effects_between(before, alone).effects)
    unclear = unclear_effects(before, changed)
    if unclear and effects == PlanEffects():
        # Nothing else moves, so "no effect" would be said of just the address whose effect is not known.
        effects, unclear = PlanEffects(unknown="; ".join(unclear)), ()
    about = (f"effects on an address are unknown: {reason}" for reason in unclear)
    return replace(plan, effects=effects, notes=(*plan.notes, *notes, *about))


def _as_before(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes that a plan of the base has, too."""
    for change in changes:
        if keys := tuple(key for key in change.keys if key.as_before):
            yield replace(change, keys=keys)


def _marked(effects: PlanEffects, earlier: Iterable[Effect]) -> PlanEffects:
    """The effects, of which those are marked that the changes of the base have alone."""
    known = frozenset(earlier)
    return replace(effects, effects=tuple(replace(each, as_before=each in known) for each in effects.effects))


def _assumed(callback_unknown: str | None) -> tuple[str, ...]:
    """A note when the brokers' callback class is not known."""
    assumed = "effects assume that brokers resolve quotas as Kafka does"
    match callback_unknown:
        case None:
            return ()
        case _ if callback_unknown == NOT_ASKED:
            return (f"{assumed}. It was not read whether they have a client.quota.callback.class",)
        case _:
            return (f"{assumed}. No broker answered whether they have a client.quota.callback.class: {callback_unknown}",)


AskedClient = tuple[Entity, Known]
"""An entity as it was asked for, and the client that it stands for."""

_OBJECTS: Final = json.JSONDecoder(object_pairs_hook=tuple)
"""An object as a tuple of pairs, so that a type that is there twice is seen."""


def read_clients(path: Path) -> list[AskedClient]:
    """The entities of a file, in order. Raises ``FileAccessError`` for an unreadable file or line."""
    try:
        with path.open("rb") as stream:
            return parse_clients(stream, str(path))
    except OSError as error:
        raise FileAccessError(f"{escaped(str(path))} cannot be read: {error.strerror}") from error


def parse_clients(stream: BinaryIO, name: str) -> list[AskedClient]:
    """The entities of a stream, in order; empty lines are left out.

    An empty client id is a client that sends none. Raises ``FileAccessError`` with ``name`` and the line for the first line that
    is not such an object.
    """
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig")
    try:
        with pause_collector():
            return _parsed(lines, escaped(name))
    except UnicodeDecodeError:
        raise FileAccessError(f"{escaped(name)} is not UTF-8 text") from None
    finally:
        with contextlib.suppress(ValueError):
            lines.detach()


def _parsed(lines: Iterable[str], name: str) -> list[AskedClient]:
    clients = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            value, end = _OBJECTS.raw_decode(text)
            if end != len(text):
                raise json.JSONDecodeError("Extra data", text, end)
            entity = _entity(value)
            clients.append((entity, client_of(entity)))
        except (ValueError, RecursionError) as error:
            raise FileAccessError(
                f'{name}:{number}: {_reason(error)}. A line is {{"user": "alice", "client-id": "app"}}'
            ) from None
    return clients


def _entity(value: Any) -> Entity:
    if not isinstance(value, tuple):
        raise _LineError("this is not an object")
    names: dict[str, EntityName] = {}
    for entity_type, name in value:
        if entity_type in names:
            raise _LineError(f"{shown(entity_type)} is there twice")
        if name is None:
            names[entity_type] = DEFAULT
        elif isinstance(name, str):
            names[entity_type] = name
        else:
            raise _LineError(f"the name of the {shown(entity_type)} is neither a string nor null")
    if not names:
        raise _LineError("the object has no entity type")
    return Entity.of(names)


class _LineError(ValueError):
    """What is wrong with the object of a line."""


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"this is not JSON: {error.msg} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "this is not JSON: it is nested too deep"
    return str(error)
