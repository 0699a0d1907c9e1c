"""Names of clients that entities give, to look metric names up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reconciler.model import Entity

if TYPE_CHECKING:
    from reconciler.traffic import ClientNames


def names_of(entities: Iterable[Entity]) -> ClientNames:
    """The users and client-ids that entities name."""
    from reconciler.traffic import ClientNames

    some = tuple(entities)
    users, client_ids = (
        frozenset(name for entity in some if isinstance(name := entity.name(type_), str)) for type_ in ("user", "client-id")
    )
    return ClientNames(users=users, client_ids=client_ids)
