"""Which owner's folder an exported entity belongs in: by the owners of a Repository manifest, or by prefixes of names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.manifest.discovery import literal_start
from reconciler.manifest.documents import Owner
from reconciler.manifest.ownership import owner_of_entity
from reconciler.model import Entity, EntityType, MatchKind, Selector, Span, TypeMatch
from reconciler.yaml import scalar_text

_PREFIX: Final = re.compile(r"[A-Za-z0-9]+[-_.:/]")
_LEAST: Final = 2
"""Entities that make a prefix: one name alone shows no team."""
REST: Final = "platform"
"""The owner of every entity that no prefix lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """Where entities are written: a folder, relative and with ``/`` at its end, or empty, and who owns them."""

    folder: str = ""
    owner: str | None = None


def places_of_owners(owners: Mapping[str, Owner]) -> Callable[[Entity], FilePlace]:
    """By the entities that owners list; the rest belongs to the first owner that lists none."""
    others = next((name for name, owner in owners.items() if owner.entities is None), None)

    def place(entity: Entity) -> FilePlace:
        name = owner_of_entity(entity, owners) or others
        if name is None:
            return FilePlace()
        paths = owners[name].paths or ()
        return FilePlace(folder=literal_start(paths[0]) if paths else "", owner=name)

    return place


def owners_by_prefix(entities: Iterable[Entity]) -> dict[str, Owner]:
    """An owner for each prefix that two names share, up to the first ``-``, ``_``, ``.``, ``:`` or ``/``; ``REST`` for others."""
    counts: Counter[str] = Counter()
    for entity in entities:
        name = entity.name(EntityType.USER) or entity.name(EntityType.CLIENT_ID)
        if isinstance(name, str) and (match := _PREFIX.match(name)):
            counts[match[0]] += 1
    owners: dict[str, Owner] = {}
    for prefix in sorted(prefix for prefix, count in counts.items() if count >= _LEAST):
        team = prefix[:-1].lower()
        free = (each for each in (team, *(f"{team}-{number}" for number in range(2, 10_000))) if each not in {REST, *owners})
        owner = next(free)
        owners[owner] = _owner(owner, prefix)
    owners[REST] = _owner(REST, None)
    return owners


def _owner(name: str, prefix: str | None) -> Owner:
    entities = None
    if prefix is not None:
        match = TypeMatch(kind=MatchKind.PREFIX, text=prefix)
        entities = tuple(Selector(types=((each.value, match),)) for each in (EntityType.USER, EntityType.CLIENT_ID))
    return Owner(name=name, paths=(f"teams/{name}/**",), entities=entities, span=Span(file="", line=1, column=1))


def owners_yaml(owners: Mapping[str, Owner]) -> str:
    """The field ``owners`` of a Repository manifest, as ``owners_by_prefix`` makes them."""
    lines = ["  owners:"]
    for name, owner in owners.items():
        selectors: Sequence[str] = [
            f"{{{entity_type}: {{prefix: {scalar_text(match.text)}}}}}"
            for selector in owner.entities or ()
            for entity_type, match in selector.types
        ]
        listed = f", entities: [{', '.join(selectors)}]" if selectors else ""
        lines.append(f'    {scalar_text(name)}: {{paths: ["{(owner.paths or ("",))[0]}"]{listed}}}')
    return "\n".join(lines) + "\n"
