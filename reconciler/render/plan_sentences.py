"""A plan in sentences, shared by its view and by comments: what it is of, what it counts, and where limits move."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence

from reconciler.model import ClusterIdentity, KeyChange, Plan, WithheldOwner, display_name
from reconciler.text import count_of


def cluster_title(cluster: ClusterIdentity) -> str:
    """``cluster prod-eu (4L6g3nShT-eMCtK--X86sw, Kafka 4.3, quotas by acme.Groups)``, with what is known."""
    known = [f"{cluster.id}"] if cluster.id else []
    known += [f"Kafka {cluster.kafka_version}"] if cluster.kafka_version else []
    known += [f"quotas by {cluster.quota_callback}"] if cluster.quota_callback else []
    name = f"cluster {display_name(cluster.name)}" if cluster.name else "the cluster"
    return f"{name} ({', '.join(known)})" if known else name


def read_words(plan: Plan) -> str:
    """``read from its brokers at 2026-01-02 12:00:00 UTC``."""
    origin = {"broker": "its brokers", "zookeeper": "ZooKeeper", "snapshot": "a snapshot"}[plan.observed.origin.value]
    return f"read from {origin} at {plan.observed.at:%Y-%m-%d %H:%M:%S} UTC"


def undecided_words(plan: Plan) -> str:
    """``1 entity that left the manifests is not removed (prune: never)``, and those whose findings ask for a decision."""
    others = len(plan.undecided) - len(plan.kept)
    parts = []
    if plan.kept:
        are = "is" if len(plan.kept) == 1 else "are"
        left = count_of(len(plan.kept), "entity that left the manifests", "entities that left the manifests")
        parts.append(f"{left} {are} not removed (prune: never)")
    if others:
        undeclared = count_of(others, "entity that no manifest declares", "entities that no manifest declares")
        parts.append(f"{undeclared} {'needs' if others == 1 else 'need'} a decision")
    return " and ".join(parts)


def withheld_words(withheld: Sequence[WithheldOwner]) -> str:
    """``3 changes of 2 owners withheld``."""
    changes = sum(len(each.changes) for each in withheld)
    return f"{count_of(changes, 'change')} of {count_of(len(withheld), 'owner')} withheld"


def summary_sentence(plan: Plan) -> str:
    """Counts of entities; for an empty plan, that nothing differs."""
    s = plan.summary
    rest = f"{s.unchanged:,} unchanged, {s.unmanaged:,} unmanaged"
    if plan.withheld:
        rest = f"{rest}; {withheld_words(plan.withheld)}"
    if not plan.changes and plan.withheld:
        return f"Nothing to write ({rest})."
    if not plan.changes and plan.undecided:
        return f"Nothing to write, but {undecided_words(plan)} ({rest})."
    if not plan.changes:
        return f"No changes: the cluster has what the manifests declare ({rest})."
    decide = f"; {undecided_words(plan)}" if plan.undecided else ""
    return f"{s.create:,} to create, {s.update:,} to update, {s.delete:,} to delete. {rest}{decide}."


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
    """The direction of one key. A live value that is not a number counts as tightening, which is the careful side."""
    if key.after is None:
        return ChangeDirection.REMOVED
    if key.before is None:
        return ChangeDirection.FIRST_LIMIT
    return ChangeDirection.LOOSENS if key.after > key.before else ChangeDirection.TIGHTENS


def direction_sentence(plan: Plan) -> str:
    """``3 tighten, 1 loosens, 2 first limits, 1 removed``: counts of limits, only of those that occur; nothing for no changes."""
    counts = Counter(direction(key) for change in plan.changes for key in change.keys)
    return ", ".join(
        f"{counts[direction]} {direction.value if counts[direction] == 1 else _MANY[direction]}"
        for direction in ChangeDirection
        if counts[direction]
    )
