"""The change of one entity that somebody asked for by hand, key by key; keys that were not named stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.model import Action, Change, Entity, KeyChange, Quotas, Reason, same_value
from reconciler.text import number_text


def change_of_one(entity: Entity, live: Quotas, *, add: Mapping[str, float], delete: Collection[str]) -> Change | None:
    """What is left to do; ``None`` when the entity has all of ``add`` and nothing of ``delete`` already."""
    keys = tuple(sorted((*_set(live, add), *_removed(live, delete)), key=lambda key: key.key))
    if not keys:
        return None
    left = (live.keys() - set(delete)) | add.keys()
    action = Action.CREATE if not live else Action.UPDATE if left else Action.DELETE
    return Change(entity=entity, action=action, keys=keys)


def nothing_to_do_notes(entity: Entity, live: Quotas, *, add: Mapping[str, float], delete: Collection[str]) -> Iterator[str]:
    """A sentence for every key that is as it was asked for already."""
    for key in sorted(delete):
        if key not in live:
            yield f"{key} is not set on {entity}, so there is nothing to delete"
    for key, value in sorted(add.items()):
        if same_value(live.get(key), value):
            yield f"{key} of {entity} is {number_text(value)} already"


def _set(live: Quotas, add: Mapping[str, float]) -> Iterator[KeyChange]:
    for key, value in add.items():
        before = live.get(key)
        if not same_value(before, value):
            reason = Reason.NOT_IN_CURRENT if before is None else Reason.VALUE_DIFFERS
            yield KeyChange(key=key, before=before, after=value, reason=reason)


def _removed(live: Quotas, delete: Collection[str]) -> Iterator[KeyChange]:
    for key in delete:
        if key in live:
            yield KeyChange(key=key, before=live[key], after=None, reason=Reason.ON_REQUEST)
