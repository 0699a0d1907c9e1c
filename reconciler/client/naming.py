"""Entities and selectors as Python calls, so that a script writes neither types as strings nor marks for the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.errors import UsageError
from reconciler.model import DEFAULT, Entity, EntityName, EntityType, MatchKind, Selector, TypeMatch
from reconciler.text import shown

ANY: Final = TypeMatch(kind=MatchKind.ANY)
"""In ``matching``: whatever the name, the default included (Kafka's match type 2)."""

NAMED: Final = TypeMatch(kind=MatchKind.NAMED)
"""In ``matching``: whatever the name, but not the default."""


def entity(*, user: EntityName | None = None, client_id: EntityName | None = None, ip: EntityName | None = None) -> Entity:
    """An entity: a name is a string, the built-in default is ``DEFAULT``, and a type that is left out is absent.

    All three are different things, and the string ``"<default>"`` is an ordinary name. Raises ``UsageError`` when every type is
    left out, and for anything but a string or ``DEFAULT``.

    >>> str(entity(user="alice", client_id=DEFAULT))
    'user=alice client-id=<default>'
    """
    names: dict[str, EntityName | None] = {EntityType.USER: user, EntityType.CLIENT_ID: client_id, EntityType.IP: ip}
    given = {kind: name for kind, name in names.items() if name is not None}
    if not given:
        msg = "an entity needs a type: user, client_id or ip"
        raise UsageError(msg)
    for kind, name in given.items():
        _require_name(kind, name)
    return Entity.of(given)


def prefix(text: str) -> TypeMatch:
    """Match, in ``matching``, the names that begin so. Never the default."""
    return TypeMatch(kind=MatchKind.PREFIX, text=text)


def matching(
    *,
    user: EntityName | TypeMatch | None = None,
    client_id: EntityName | TypeMatch | None = None,
    ip: EntityName | TypeMatch | None = None,
    strict: bool = False,
) -> Selector:
    """Describe the entities that have every type given here, and match it.

    A string is exactly that name, ``DEFAULT`` the default. ``ANY``, ``NAMED`` and ``prefix`` are wider. Types that are left out
    may be present unless ``strict``, as in Kafka's own filters.

    >>> with connect("b1:9092") as quotas:
    ...     for found in quotas.describe(matching(user=prefix("pay"), strict=True)).entities:
    ...         print(found)
    user=payments
    """
    wanted = {EntityType.USER: user, EntityType.CLIENT_ID: client_id, EntityType.IP: ip}
    types = tuple((kind.value, _type_match(name)) for kind, name in wanted.items() if name is not None)
    return Selector(types=types, strict=strict)


def _require_name(what: str, name: object) -> None:
    if name is not DEFAULT and not isinstance(name, str):
        hint = ". For the default give DEFAULT" if isinstance(name, Mapping) else ""
        msg = f"the name of {what} must be a string or DEFAULT, not {shown(repr(name))}{hint}"
        raise UsageError(msg)


def _type_match(wanted: EntityName | TypeMatch) -> TypeMatch:
    if isinstance(wanted, TypeMatch):
        return wanted
    _require_name("entity type", wanted)
    if wanted is DEFAULT:
        return TypeMatch(kind=MatchKind.DEFAULT)
    return TypeMatch(kind=MatchKind.NAME, text=wanted)
