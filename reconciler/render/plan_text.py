"""A plan for a terminal: what changes, from what to what, where it is written, what guards say, and one summary line."""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import (
    OTHER,
    Action,
    Change,
    ClusterFailure,
    ClusterIdentity,
    Direction,
    Effect,
    GuardStatus,
    KeyChange,
    KnownAddress,
    Limit,
    Plan,
    PlanEffects,
    Reason,
    display_name,
    escaped,
)
from reconciler.render.findings_text import findings_lines
from reconciler.render.styled import Block, Line, Style, line, message_segments
from reconciler.text import amount, count_of, factor

_SIGN: Final = {Action.CREATE: ("+", Style.CREATE), Action.UPDATE: ("~", Style.UPDATE), Action.DELETE: ("-", Style.DELETE)}
_WHY: Final = {
    Reason.NOT_IN_CURRENT: "new",
    Reason.VALUE_DIFFERS: "",
    Reason.KEY_NOT_IN_MANIFEST: "the manifest does not set it",
    Reason.ENTITY_NOT_IN_MANIFEST: "no manifest declares it",
    Reason.WAY_BACK: "as it was",
    Reason.ON_REQUEST: "on request",
}

INCOMPLETE: Final = "only some manifests were planned; nothing is pruned"
"""The note of a plan that is not complete."""


def plan_lines(plan: Plan) -> tuple[Line, ...]:
    """The whole plan, readable from top to bottom; the last line but the digest counts."""
    return tuple(_lines(plan))


def _lines(plan: Plan) -> Iterator[Line]:
    yield line(
        ("Plan for ", Style.STRONG),
        (cluster_title(plan.cluster), Style.STRONG),
        f", {read_words(plan)}",
    )
    yield line()
    for change in plan.changes:
        yield from _change(change)
    if plan.changes:
        yield line()
    if plan.effects is not None:
        yield from effects_lines(plan.effects, changed=len(plan.changes))
        yield line()
    if plan.unmanaged:
        yield line("Unmanaged, and left as they are:")
        yield from (line((f"  ? {entity}", Style.FAINT)) for entity in plan.unmanaged)
        yield line()
    yield from _guards(plan)
    for note in plan.notes:
        yield line(("Note: ", Style.FAINT), note)
    if not plan.complete:
        yield line(("Note: ", Style.FAINT), INCOMPLETE)
    yield line((summary_sentence(plan), Style.STRONG))
    yield line((f"Digest {plan.digest}", Style.FAINT))


def cluster_title(cluster: ClusterIdentity) -> str:
    """``cluster prod-eu (4L6g3nShT-eMCtK--X86sw, Kafka 4.3)``, with what is known."""
    known = [f"{cluster.id}"] if cluster.id else []
    known += [f"Kafka {cluster.kafka_version}"] if cluster.kafka_version else []
    name = f"cluster {display_name(cluster.name)}" if cluster.name else "the cluster"
    return f"{name} ({', '.join(known)})" if known else name


def read_words(plan: Plan) -> str:
    """``read from its brokers at 2026-01-02 12:00:00 UTC``."""
    origin = {"broker": "its brokers", "zookeeper": "ZooKeeper", "snapshot": "a snapshot"}[plan.observed.origin.value]
    return f"read from {origin} at {plan.observed.at:%Y-%m-%d %H:%M:%S} UTC"


def _change(change: Change) -> Iterator[Line]:
    sign, style = _SIGN[change.action]
    yield line((f"  {sign} {change.entity}", style), (f"   ({change.action.value})", Style.FAINT))
    width = max(len(k.key) for k in change.keys)
    for key in change.keys:
        yield _key(key, width)
    if change.note:
        yield line((f"      note: {escaped(change.note)}", Style.FAINT))


def _key(key: KeyChange, width: int) -> Line:
    remarks = [text for text in (factor(key.before, key.after), _WHY[key.reason], str(key.source) if key.source else "") if text]
    return line(
        f"      {key.key:<{width}}  {amount(key.key, key.before)} -> {amount(key.key, key.after)}",
        (f"   {', '.join(remarks)}", Style.FAINT),
    )


def _guards(plan: Plan) -> Iterator[Line]:
    spoken = [g for g in plan.guards if g.status is not GuardStatus.PASSED]
    for guard in spoken:
        if guard.status is GuardStatus.ACCEPTED:
            yield line((f"Guard {guard.id} is accepted: ", Style.GOOD), *message_segments(guard.message))
        else:
            yield line(
                (f"Guard {guard.id} needs acceptance: ", Style.WARN),
                *message_segments(guard.message),
                f" {guard.advice or ''}".rstrip(),
            )
    if spoken:
        yield line()


def undecided_words(plan: Plan) -> str:
    """``1 entity that no manifest declares needs a decision``; its finding names it."""
    count = len(plan.undecided)
    if count == 1:
        return "1 entity that no manifest declares needs a decision"
    return f"{count} entities that no manifest declares need a decision"


def summary_sentence(plan: Plan) -> str:
    """Counts of entities; for an empty plan, that nothing differs."""
    s = plan.summary
    rest = f"{s.unchanged} unchanged, {s.unmanaged} unmanaged"
    if not plan.changes and plan.undecided:
        return f"Nothing to write, but {undecided_words(plan)} ({rest})."
    if not plan.changes:
        return f"No changes: the cluster has what the manifests say ({rest})."
    decide = f"; {undecided_words(plan)}" if plan.undecided else ""
    return f"{s.create} to create, {s.update} to update, {s.delete} to delete; {rest}{decide}."


_WORDS: Final = {
    Direction.TIGHTENS: ("tightens", Style.WARN),
    Direction.LOOSENS: ("loosens", Style.FAINT),
    Direction.FIRST_LIMIT: ("first limit", Style.WARN),
    Direction.REMOVED: ("limit removed", Style.FAINT),
    Direction.OTHER_SOURCE: ("same value from another entity", Style.FAINT),
}


def effects_lines(effects: PlanEffects, *, changed: int) -> tuple[Line, ...]:
    """The section of a plan with ``changed`` changed entities: one row a client and key, and how many are left out."""
    return tuple(_effects_lines(effects, changed))


def _effects_lines(effects: PlanEffects, changed: int) -> Iterator[Line]:
    if effects.unknown is not None:
        yield line(("Effects are unknown: ", Style.WARN), effects.unknown)
        return
    clients = len({effect.client for effect in effects.effects})
    if not clients and not effects.left_out:
        entities = count_of(changed, "changed entity", "changed entities")
        yield line((f"Effects: {entities}, no known client affected", Style.STRONG))
        return
    known = f"at least {clients}" if effects.left_out else str(clients)
    noun = "affected client" if clients == 1 and not effects.left_out else "affected clients"
    yield line((f"Effects: {count_of(changed, 'changed entity', 'changed entities')}, {known} {noun}", Style.STRONG))
    for client, group in itertools.groupby(effects.effects, key=lambda effect: effect.client):
        moves = tuple(group)
        yield line(f"  {client}")
        width = max(len(move.key) for move in moves)
        yield from (_move(move, width) for move in moves)
    if effects.left_out:
        yield line((f"  and {count_of(effects.left_out, 'more effect', 'more effects')} not listed", Style.FAINT))
    if any(_is_any_other_client(effect) for effect in effects.effects):
        yield line(("  (any other): whom no quota names", Style.FAINT))


def _move(effect: Effect, width: int) -> Line:
    words, style = _WORDS[effect.direction]
    before, after = (_limit(effect.key, limit) for limit in (effect.before, effect.after))
    return line(f"      {effect.key:<{width}}  {before} -> {after}   ", (words, style))


def _limit(key: str, limit: Limit | None) -> str:
    if limit is None:
        return "unlimited"
    level = "" if "ip" in limit.entity.types else f", level {limit.level}"
    return f"{amount(key, limit.value)} from {limit.entity}{level}"


def _is_any_other_client(effect: Effect) -> bool:
    client = effect.client
    return OTHER in ((client.ip,) if isinstance(client, KnownAddress) else (client.user, client.client_id))


def failure_lines(failure: ClusterFailure) -> tuple[Line, ...]:
    """The same as text."""
    verdict = ("is skipped: ", Style.WARN) if failure.skipped else ("could not be looked at: ", Style.BAD)
    title = cluster_title(failure.cluster)
    return (line((f"{title[0].upper()}{title[1:]} ", Style.STRONG), verdict, failure.message), *findings_lines(failure.findings))


def join_parts(parts: Sequence[Sequence[Block]]) -> tuple[Block, ...]:
    """One after the other, with a rule between: every part begins with a line that names its cluster."""
    lines: list[Block] = []
    for index, part in enumerate(parts):
        if index:
            lines += [line(), line(("-" * 72, Style.FAINT)), line()]
        lines += part
    return tuple(lines)


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
