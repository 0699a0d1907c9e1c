"""Names of clients that entities and files give, to look metric names up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.model import Entity
from reconciler.workflows.plan import read_known_clients
from reconciler.workflows.trusted import TrustedTree

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


def read_client_names(path: Path | None, trusted: TrustedTree | None = None) -> ClientNames:
    """The names of a file of ``--known-clients``; none without one.

    Raises ``FileAccessError``, and ``UntrustedError`` for a file of a pull request.
    """
    from reconciler.traffic import ClientNames

    if path is None:
        return ClientNames()
    if trusted is not None:
        trusted.files.require_same(str(path))
    clients = read_known_clients(path)
    return ClientNames(users=frozenset(user for user, _ in clients), client_ids=frozenset(name for _, name in clients))
