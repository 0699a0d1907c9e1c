"""A plan and its apply report for a terminal.

The plan: each change with both values and its file, the guards, and one summary line. The report: one sentence first, then every
change that did not go through.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeStatus,
    ClusterFailure,
    ClusterIdentity,
    GuardStatus,
    KeptEntity,
    KeyChange,
    LeaderSpread,
    ObservedFrom,
    Plan,
    Reason,
    WithheldOwner,
    display_name,
    escaped,
)
from reconciler.render.effects_text import effects_lines
from reconciler.render.findings_text import findings_lines
from reconciler.render.layout import Block, Column, Line, Style, Table, labelled, line, table
from reconciler.render.value_sentences import change_sentences
from reconciler.resolution import callback_notes
from reconciler.text import all_changes, amount, count_of, duration, factor

_SIGN: Final = {Action.CREATE: ("+", Style.CREATE), Action.UPDATE: ("~", Style.UPDATE), Action.DELETE: ("-", Style.DELETE)}
_WHY: Final = {
    Reason.NOT_IN_CURRENT: "new",
    Reason.VALUE_DIFFERS: "",
    Reason.KEY_NOT_IN_MANIFEST: "the manifest does not set it",
    Reason.ENTITY_NOT_IN_MANIFEST: "no manifest declares it",
    Reason.WAY_BACK: "as it was",
    Reason.ON_REQUEST: "on request",
}
_KEYS: Final = (
    Column(title="key", least=12),
    Column(title="change", least=10),
    Column(title="remark", least=10),
    Column(title="place", least=7),
)
_NO_FILE: Final = "No manifest declares these"

MANY_CHANGES: Final = 200
"""Changes above which ``apply`` shows a summary of a plan."""
_SHOWN_FILES: Final = 20
_SHOWN_CUTS: Final = 10

INCOMPLETE: Final = "only some manifests were planned. Nothing is pruned"
"""The note of a plan that is not complete."""


def plan_lines(plan: Plan, *, most_changes: int | None = None) -> tuple[Block, ...]:
    """The whole plan, readable from top to bottom; the last line but the digest counts.

    A plan of more than ``most_changes`` changes is summarised: counts for each file, and the largest reductions.
    """
    return tuple(_blocks(plan, most_changes))


def _blocks(plan: Plan, most_changes: int | None) -> Iterator[Block]:
    yield line(
        ("Plan for ", Style.STRONG),
        (cluster_title(plan.cluster), Style.STRONG),
        f", {read_words(plan)}",
    )
    yield line()
    if most_changes is not None and len(plan.changes) > most_changes:
        yield from _summarised(plan)
        yield line()
    elif plan.changes:
        yield _legend(plan)
        yield line()
        yield from _changes(plan.changes, plan.leaders)
        yield line()
    for each in plan.withheld:
        yield from _withheld(each, plan, most_changes)
        yield line()
    if plan.effects is not None:
        yield from effects_lines(plan.effects, changes=plan.changes)
        yield line()
    if plan.kept:
        yield from _kept(plan.kept)
        yield line()
    if plan.unmanaged:
        yield line("Unmanaged, and left as they are:")
        yield from (line((f"  ? {entity}", Style.FAINT)) for entity in plan.unmanaged)
        yield line()
    yield from _guards(plan)
    for note in plan.notes:
        yield labelled("Note: ", Style.FAINT, note)
    if not plan.complete:
        yield labelled("Note: ", Style.FAINT, INCOMPLETE)
    yield line((summary_sentence(plan), Style.STRONG))
    yield line((f"Digest {plan.digest}", Style.FAINT))


def _kept(kept: Sequence[KeptEntity]) -> Iterator[Block]:
    yield line(("Not removed", Style.WARN), ", although no manifest declares these any more:")
    rows: list[Line | tuple[str | tuple[str, Style], ...]] = []
    for each in kept:
        rows.append(line(f"  = {each.entity}"))
        since = (f"declared at {each.since}", Style.FAINT)
        quotas = sorted(each.quotas.items())
        rows += [(key, f"{amount(key, value)}: stays (prune: never)", "", since) for key, value in quotas]
    yield table(_KEYS, rows, indent=6, titled=False)


def _legend(plan: Plan) -> Line:
    actions = {change.action for change in plan.changes}
    signs = [f"{sign} {action.value}" for action, (sign, _) in _SIGN.items() if action in actions]
    if any(factor(key.before, key.after) for change in plan.changes for key in change.keys):
        signs.append("x0.5: the new value is half of the old one")
    return labelled("Legend: ", Style.FAINT, (", ".join(signs), Style.FAINT))


def _file_of(change: Change) -> str:
    return next((key.source.file for key in change.keys if key.source is not None), "")


def _withheld(withheld: WithheldOwner, plan: Plan, most_changes: int | None) -> Iterator[Block]:
    count = count_of(len(withheld.changes), "change") if withheld.changes else "manifests with errors"
    yield line(("Withheld", Style.WARN), (f" for {withheld.name}: {count}", Style.STRONG))
    if most_changes is None or len(withheld.changes) <= most_changes:
        yield from _changes(withheld.changes, plan.leaders)
    for reason in withheld.reasons:
        head = f"  {reason.kind} {reason.id}: " if reason.id is not None else "  "
        yield line((head, Style.WARN), reason.message, hang=4)


def _by_file(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """By the file that declares them, files by name; those that no file declares come last."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(_file_of(change), []).append(change)
    return {file: groups[file] for file in sorted(groups, key=lambda file: (not file, file))}


def _changes(every: Sequence[Change], leaders: LeaderSpread | None) -> Iterator[Table]:
    groups = _by_file(every)
    rows: list[tuple[Line | str | tuple[str, Style], ...] | Line] = []
    for file, changes in groups.items():
        if rows:
            rows.append(line())
        headed = bool(file) or len(groups) > 1
        if headed:
            rows.append(line((file or _NO_FILE, Style.STRONG)))
        for change in changes:
            sign, style = _SIGN[change.action]
            rows.append(line((f"  {sign} {change.entity}", style)))
            for key in change.keys:
                rows.append(_key(key, file, headed=headed))
                rows += [line((f"        {words}", Style.FAINT), hang=10) for words in change_sentences(key, leaders)]
            if change.note:
                rows.append(labelled("      note: ", Style.FAINT, (change.note, Style.FAINT)))
    yield table(_KEYS, rows, indent=6, titled=False)


def _key(key: KeyChange, file: str, *, headed: bool = False) -> tuple[str | tuple[str, Style], ...]:
    why = "" if headed and key.reason is Reason.ENTITY_NOT_IN_MANIFEST else _WHY[key.reason]
    place = "" if key.source is None else f"line {key.source.line}" if key.source.file == file else str(key.source)
    if key.profile is not None:
        place = f"{place}, profile {display_name(key.profile)}"
    return (
        key.key,
        f"{amount(key.key, key.before)} -> {amount(key.key, key.after)}",
        (", ".join(remark for remark in (factor(key.before, key.after), why) if remark), Style.FAINT),
        (place, Style.FAINT),
    )


def _summarised(plan: Plan) -> Iterator[Block]:
    groups = _by_file(plan.changes)
    yield line((f"{count_of(len(plan.changes), 'change')} in {count_of(len(groups), 'file')}", Style.STRONG))
    largest = sorted(groups, key=lambda file: -len(groups[file]))[:_SHOWN_FILES]
    columns = (Column(title="file", least=12), *(Column(title=action.value, to_the_right=True) for action in Action))
    yield table(
        columns,
        (
            (file or _NO_FILE.lower(), *(f"{sum(c.action is action for c in groups[file]):,}" for action in Action))
            for file in largest
        ),
    )
    if len(groups) > _SHOWN_FILES:
        yield line((f"  and {len(groups) - _SHOWN_FILES:,} more files", Style.FAINT))
    cuts = [(change, key) for change in plan.changes for key in change.keys if _share(key) < 1]
    if cuts:
        yield line()
        yield line(("The largest reductions", Style.STRONG))
        yield table(
            (Column(title="entity", least=12), *_KEYS[:3]),
            (
                (str(change.entity), *_key(key, "")[:3])
                for change, key in sorted(cuts, key=lambda cut: _share(cut[1]))[:_SHOWN_CUTS]
            ),
        )
    yield line()
    yield line("kafka-quotas plan shows every change.")


def _share(key: KeyChange) -> float:
    """The new value as a share of the old one; infinite where that means nothing."""
    if key.before is None or key.after is None or not 0 < key.before < math.inf:
        return math.inf
    return key.after / key.before


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


def _guards(plan: Plan) -> Iterator[Line]:
    spoken = [g for g in plan.guards if g.status is not GuardStatus.PASSED]
    for guard in spoken:
        if guard.status is GuardStatus.ACCEPTED:
            whose = f" of owner {escaped(guard.owner)}" if guard.owner is not None else ""
            yield line((f"Guard {guard.id}{whose} is accepted: ", Style.GOOD), guard.message)
        else:
            yield line(
                (f"Guard {guard.id} needs acceptance: ", Style.WARN),
                guard.message,
                f" {guard.advice or ''}".rstrip(),
            )
    if spoken:
        yield line()


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


def failure_lines(failure: ClusterFailure) -> tuple[Line, ...]:
    """The reason why there is no result for a cluster, with its findings."""
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


def apply_report_lines(report: ApplyReport) -> tuple[Line, ...]:
    """An apply report as lines: a count of applied changes, and each other change by name."""
    return tuple(_report_lines(report))


def _report_lines(report: ApplyReport) -> Iterator[Line]:
    for outcome in report.outcomes:
        if outcome.status in (ChangeStatus.FAILED, ChangeStatus.UNKNOWN):
            code = f" (error {outcome.error_code})" if outcome.error_code is not None else ""
            words = escaped(outcome.error or "no answer")
            yield line((f"  {outcome.status.value}: ", Style.BAD), f"{outcome.change.entity}: {words}{code}")
    for withheld in report.withheld:
        count = f": {count_of(len(withheld.changes), 'change')}" if withheld.changes else ""
        yield line(("  withheld: ", Style.WARN), f"{withheld.name}{count}")
        for reason in withheld.reasons:
            head = f"    {reason.kind} {reason.id}: " if reason.id is not None else "    "
            yield line(head, reason.message, hang=6)
    yield line(_report_headline(report))
    if report.result in (ApplyResult.DONE, ApplyResult.PARTIAL):
        yield from (labelled("Note: ", Style.WARN, note) for note in callback_notes(report.cluster))
    if report.withheld and report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO):
        yield line((f"{withheld_words(report.withheld)}.", Style.BAD))
    if report.message and report.result is not ApplyResult.DONE:
        yield line(f"{report.message[0].upper()}{report.message[1:].removesuffix('.')}.")


def _report_headline(report: ApplyReport) -> tuple[str, Style]:
    total = len(report.outcomes)
    match report.result:
        case ApplyResult.NOTHING_TO_DO:
            words = "the cluster has every value of it" if report.message else "the cluster has every declared value already"
            return (f"Nothing to do: {words}.", Style.GOOD)
        case ApplyResult.DONE if report.validate_only:
            return (f"The cluster would accept {all_changes(total)}. Nothing was written.", Style.GOOD)
        case ApplyResult.DONE:
            return (f"Applied {count_of(total, 'change')}{_time_taken(report)}, verified {_verified_where(report)}.", Style.GOOD)
        case ApplyResult.REFUSED:
            return ("Refused. Nothing was written.", Style.BAD)
        case ApplyResult.FAILED:
            return (f"Failed. Nothing was written. {_status_counts(report)}", Style.BAD)
        case ApplyResult.PARTIAL:
            return (f"Not complete: {_status_counts(report)}", Style.BAD)


def _time_taken(report: ApplyReport) -> str:
    return "" if report.seconds is None else f" in {duration(max(report.seconds, 0.1))}"


def _verified_where(report: ApplyReport) -> str:
    if report.origin is ObservedFrom.ZOOKEEPER:
        return "in ZooKeeper"
    return "on every broker" if report.brokers is None else f"on {count_of(report.brokers, 'broker')}"


def _status_counts(report: ApplyReport) -> str:
    counts = [(report.count(status), status.value.replace("_", " ")) for status in ChangeStatus]
    return ", ".join(f"{n} {word}" for n, word in counts) + "."
