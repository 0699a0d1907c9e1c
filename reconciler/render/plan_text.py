"""A plan for a terminal: what changes, from what to what, where it is written, what guards say, and one summary line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import Action, Change, ClusterIdentity, GuardStatus, KeyChange, Plan, Reason, display_name, escaped
from reconciler.render.amounts import amount, factor
from reconciler.render.effects_text import effects_lines
from reconciler.render.styled import Line, Style, line

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
            yield line((f"Guard {guard.id} is accepted: ", Style.GOOD), guard.message)
        else:
            yield line((f"Guard {guard.id} needs acceptance: ", Style.WARN), guard.message)
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
