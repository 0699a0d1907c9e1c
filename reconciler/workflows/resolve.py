"""Resolve: the effective quotas of clients in a state, and what differs between two states.

The states are ``QuotaView`` values, read before (``resolve_sources``, or ``current_view`` over any ``QuotaReader``); nothing here
reads or writes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from reconciler.errors import UsageError
from reconciler.model import OTHER, Entity, Known, KnownAddress
from reconciler.resolution import (
    EffectiveQuotas,
    QuotaView,
    Resolution,
    ResolveOptions,
    ViewComparison,
    address_of,
    client_of,
    compare,
    compare_known,
)
from reconciler.text import list_some

MOST_EFFECTS: Final = 100_000
"""Differences that are listed when nobody was asked about in particular."""

_PLAIN: Final = ResolveOptions()


def require_client(entity: Entity) -> tuple[Entity, Known]:
    """An entity with the client that it stands for. Raises ``UsageError`` for what no connection can be."""
    try:
        return entity, client_of(entity)
    except ValueError as error:
        raise UsageError(f"nobody can be {entity}: {error}") from None


def resolve_each(view: QuotaView, entities: Iterable[Entity], wanted: ResolveOptions = _PLAIN) -> Iterator[Resolution]:
    """The effective quotas of each entity in turn. Raises ``UsageError`` when the iterator reaches one that nobody can be."""
    answers = view.answers()
    for entity in entities:
        require_client(entity)
        yield answers.answer(entity, wanted)


def resolve_known(view: QuotaView, wanted: ResolveOptions = _PLAIN) -> Iterator[Resolution]:
    """The same for every entity that the state names, and a user's other client ids where those differ."""
    answers = view.answers()
    return (answers.answer(entity, wanted) for entity, _ in answers.known_clients())


def difference_between(before: QuotaView, after: QuotaView, entities: Iterable[Entity] | None = None) -> ViewComparison:
    """Whose limits differ in value or source: of these, in their order, or of all known clients of both states.

    Raises ``UsageError`` for an entity that nobody can be.
    """
    one, other = before.answers(), after.answers()
    notes = tuple(dict.fromkeys((*before.notes, *after.notes, *_two_clusters(before, after))))
    if entities is None:
        found = compare_known(one, other, most=MOST_EFFECTS)
        return ViewComparison(before=before, after=after, comparison=found, asked=None, notes=notes)
    pairs = [require_client(entity) for entity in entities]
    return ViewComparison(before=before, after=after, comparison=compare(one, other, pairs), asked=len(pairs), notes=notes)


def notes_about(resolution: Resolution, answers: EffectiveQuotas) -> tuple[str, ...]:
    """What to know about one answer beside it: whom it does not speak of, and what may be in the way."""
    client = resolution.client
    notes = []
    if isinstance(client, KnownAddress):
        if client.ip is not OTHER and address_of(client.ip) is None:
            notes.append("this is a host name; brokers limit the address that each of them found for it when the quota was set")
        hosts = answers.host_names_in_the_way(client)
        if hosts:
            listed = list_some([str(host) for host in hosts], 3)
            notes.append(f"limits of host names are not counted, since only the brokers know their addresses: {listed}")
    elif keys := answers.otherwise(client):
        notes.append(
            "this is a client that sends no client id; one that sends an id which no quota names gets another "
            f"{', '.join(keys)}: ask with --defaults client-id"
        )
    return tuple(notes)


def is_unknown(resolution: Resolution) -> bool:
    """True when nothing of an answer can be told."""
    return bool(resolution.unknown) and set(resolution.unknown) >= set(resolution.keys)


def _two_clusters(before: QuotaView, after: QuotaView) -> Iterator[str]:
    one, other = before.cluster.id, after.cluster.id
    if one is not None and other is not None and one != other:
        yield f"these are two clusters: {one} before, {other} after"
