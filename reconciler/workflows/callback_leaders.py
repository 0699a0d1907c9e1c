"""Leaders of partitions for the plugin of groups: whether a backtest may give them to it, and the note where it may not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from reconciler.model import Entity, LeaderSpread, Message, compose, flag_part
from reconciler.resolution import GROUP_CALLBACK, ProportionalTotal, is_reserved, stored_rule
from reconciler.workflows.units import needs_leaders

if TYPE_CHECKING:
    from reconciler.workflows.intent import Intent

_GIVING_LEADERS: Final = ((4, 0), (5, 0))
"""The first release whose brokers give callbacks the leaders in KRaft mode, and the first that no longer does (KIP-1200)."""


def uses_leaders(intent: Intent | None, callback: str | None) -> bool:
    """Whether limits depend on the leaders of partitions. ``callback``: the class that the command line names."""
    written = intent.spec.brokers.callback if intent is not None else None
    names = {callback, written.name if written is not None else None}
    return GROUP_CALLBACK in names or (intent is not None and needs_leaders(intent.desired))


def known_leaders(spread: LeaderSpread | None, release: tuple[int, int] | None) -> LeaderSpread | None:
    """The leaders as brokers of this release give them to a callback. ``release``: ``None`` when it is not known."""
    if spread is None or not spread.by_topic or not _gives_leaders(release):
        return None
    return spread


def leader_notes(
    quotas: Mapping[Entity, Mapping[str, float]], leaders: LeaderSpread | None, release: tuple[int, int] | None
) -> Iterator[Message]:
    """One note where the plugin has totals in proportion to leaders: whose leaders count, or why none are known."""
    if not any(isinstance(stored_rule(entity), ProportionalTotal) for entity in quotas if is_reserved(entity)):
        return
    if leaders is not None:
        yield compose(
            "Totals in proportion to leaders are judged by the leaders of today on each broker. "
            "The history does not have the leaders of its own time."
        )
        return
    if not _gives_leaders(release):
        yield compose(
            "Totals in proportion to leaders are judged by the stored number on all brokers, which is the largest part: brokers "
            "of this Kafka version do not give the plugin the leaders."
        )
        return
    yield compose(
        "Totals in proportion to leaders are judged by the stored number on all brokers, which is the largest part: the leaders "
        "of partitions are not known. Read the live cluster with {option}.",
        option=flag_part("--bootstrap-server"),
    )


def _gives_leaders(release: tuple[int, int] | None) -> bool:
    first, last = _GIVING_LEADERS
    return release is None or first <= release < last
