"""Which way a limit moves: what a reviewer wants to know before any number."""

from __future__ import annotations

import enum
from collections import Counter

from reconciler.model import KeyChange, Plan


class ChangeDirection(enum.StrEnum):
    """What a change means for the clients; the order is that of every sentence that counts them."""

    TIGHTENS = "tightens"
    LOOSENS = "loosens"
    FIRST_LIMIT = "first limit"
    REMOVED = "removed"


_MANY = {
    ChangeDirection.TIGHTENS: "tighten",
    ChangeDirection.LOOSENS: "loosen",
    ChangeDirection.FIRST_LIMIT: "first limits",
    ChangeDirection.REMOVED: "removed",
}


def direction(key: KeyChange) -> ChangeDirection:
    """The direction of one key. A live value that is no number counts as tightening, which is the careful side."""
    if key.after is None:
        return ChangeDirection.REMOVED
    if key.before is None:
        return ChangeDirection.FIRST_LIMIT
    return ChangeDirection.LOOSENS if key.after > key.before else ChangeDirection.TIGHTENS


def direction_sentence(plan: Plan) -> str:
    """``3 tighten, 1 loosens, 2 first limits, 1 removed``: counts of limits, only of those that occur; nothing for no changes."""
    counts = Counter(direction(key) for change in plan.changes for key in change.keys)
    return ", ".join(f"{counts[one]} {one.value if counts[one] == 1 else _MANY[one]}" for one in ChangeDirection if counts[one])
