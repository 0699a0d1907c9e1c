"""A plan: whether it can be applied, each change with both values and its file, effects, guards, findings and notes."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from reconciler.model import (
    Action,
    Change,
    ClusterIdentity,
    ClusterTotal,
    GuardResult,
    GuardStatus,
    KeptEntity,
    KeyChange,
    LeaderSpread,
    MessagePart,
    Observed,
    ObservedFrom,
    PartKind,
    Plan,
    Reason,
    Severity,
    display_name,
    key_part,
    name_part,
)
from reconciler.render.effects_text import effects_lines
from reconciler.render.findings_text import counts_sentence, findings_on_page
from reconciler.render.layout import (
    Block,
    Column,
    Fold,
    Line,
    Style,
    Table,
    Tile,
    View,
    chip,
    commit_line,
    heading,
    labelled,
    line,
    note_line,
    table,
)
from reconciler.text import amount, amount_part, count_of, expiry_text, factor, rebalance_text, unit_text

if TYPE_CHECKING:
    from reconciler.model import KeyDrift


class ChangeDirection(enum.StrEnum):
    """What a change means for the clients; the order is that of every sentence that counts them."""

    TIGHTENS = "tightens"
    LOOSENS = "loosens"
    FIRST_LIMIT = "first limit"
    REMOVED = "removed"


_SIGN: Final = {Action.CREATE: ("+", Style.CREATE), Action.UPDATE: ("~", Style.UPDATE), Action.DELETE: ("-", Style.DELETE)}
_WHY: Final = {
    Reason.NOT_IN_CURRENT: "new",
    Reason.VALUE_DIFFERS: "",
    Reason.KEY_NOT_IN_MANIFEST: "the manifest does not set it",
    Reason.ENTITY_NOT_IN_MANIFEST: "no manifest declares it",
    Reason.WAY_BACK: "as it was",
    Reason.ON_REQUEST: "on request",
}
_ENTITY: Final = Column(title="entity", across=True)
_KEYS: Final = (
    Column(title="key", least=12),
    Column(title="change", least=10),
    Column(title="remark", least=10),
    Column(title="declared at", least=7),
)
_NO_FILE: Final = "No manifest declares these"

MANY_CHANGES: Final = 200
"""Changes above which ``apply`` shows a summary of a plan."""
_SHOWN_FILES: Final = 20
_INCOMPLETE: Final = "only some manifests were planned. Nothing is pruned"
"""The note of a plan that is not complete."""
_DIRECTIONS: Final = {
    ChangeDirection.TIGHTENS: (Style.WARN, "tighten"),
    ChangeDirection.FIRST_LIMIT: (Style.WARN, "first limits"),
    ChangeDirection.REMOVED: (Style.BAD, "removed"),
    ChangeDirection.LOOSENS: (Style.GOOD, "loosen"),
}
"""The style of each direction, and its plural."""
_GUARDS: Final = {
    GuardStatus.NEEDS_ACCEPTANCE: ("Needs acceptance", Style.WARN),
    GuardStatus.ACCEPTED: ("Accepted", Style.GOOD),
    GuardStatus.PASSED: ("Passed", Style.FAINT),
}
Cells: TypeAlias = "tuple[Line | str | tuple[str, Style], ...]"


def plan_view(plan: Plan, *, most_changes: int | None = None) -> View:
    """The whole plan, readable from top to bottom; in a terminal the last line but the digest counts.

    A plan of more than ``most_changes`` changes is summarised: counts for each file.
    """
    summary = summary_sentence(plan)
    title, read = cluster_title(plan.cluster), read_words(plan.observed)
    counts = Counter(direction(key) for change in plan.changes for key in change.keys)
    words = {way: way.value if counts[way] == 1 else many for way, (_, many) in _DIRECTIONS.items()}
    moves = ", ".join(f"{counts[way]} {words[way]}" for way in ChangeDirection if counts[way])
    return View(
        kind="plan",
        cluster=plan.cluster.name,
        title=line(("Plan for ", Style.STRONG), (title, Style.STRONG), f", {read}"),
        answer=line((summary, Style.STRONG), pages=(_answer(plan),)),
        lead=f"{moves}: {summary}" if moves else summary,
        blocks=tuple(_blocks(plan, most_changes)),
        foot=line((f"Digest {plan.digest}", Style.FAINT)),
        about=(line(f"{title[0].upper()}{title[1:]}, {read}"), *((commit_line(plan.source),) if plan.source.commit else ())),
        tiles=tuple(
            Tile(number=counts[way], words=words[way], style=style.page_class, place="changes")
            for way, (style, _) in _DIRECTIONS.items()
            if plan.changes
        ),
        tiles_title="Limits that change",
    )


def _answer(plan: Plan) -> str:
    if plan.errored or plan.tripped:
        return _stopped(plan)
    if not plan.changes:
        return "No change."
    return f"Ready: {count_of(len(plan.changes), 'entity changes', 'entities change')}."


def _stopped(plan: Plan) -> str:
    if plan.errored:
        return f"Blocked: {count_of(sum(finding.severity is Severity.ERROR for finding in plan.findings), 'error')}."
    return f"Needs acceptance: {count_of(len(plan.tripped), 'guard')}."


def _blocks(plan: Plan, most_changes: int | None) -> Iterator[Block]:
    yield line()
    if plan.errored or not plan.complete:
        yield from _warnings(plan)
    if most_changes is not None and len(plan.changes) > most_changes:
        yield from _summarised(plan)
        yield line()
    elif plan.changes:
        yield _legend(plan)
        yield line()
        yield heading("Changes", count=sum(len(change.keys) for change in plan.changes))
        yield from _changes(plan.changes, plan.totals.leaders)
        yield line()
    if plan.effects is not None:
        yield from effects_lines(plan.effects, changes=plan.changes)
        yield line()
    if plan.kept:
        yield from _kept(plan.kept)
        yield line()
        yield line()
    yield from _guards(plan)
    if plan.findings:
        yield heading(f"Findings: {counts_sentence(plan.findings)}")
        yield from findings_on_page(plan.findings)
    if plan.notes:
        yield heading("Notes")
        yield from map(note_line, plan.notes)
    if not plan.complete:
        yield line(("Note: ", Style.FAINT), _INCOMPLETE, hang=6, pages=())


def _warnings(plan: Plan) -> Iterator[Line]:
    if plan.errored:
        yield line(pages=(("The findings below have errors: this plan can be read, never applied.", Style.WARN),))
    if not plan.complete:
        yield line(pages=((f"{_INCOMPLETE[0].upper()}{_INCOMPLETE[1:]}.", Style.WARN),))


def _kept(kept: Sequence[KeptEntity]) -> Iterator[Block]:
    yield heading("Not removed", ("Not removed", Style.WARN), ", although no manifest declares these any more:", count=len(kept))
    rows: list[Cells] = []
    for each in kept:
        entity = line(f"  = {each.entity}", pages=(each.entity,))
        since = (f"declared at {each.since}", Style.FAINT)
        quotas = sorted(each.quotas.items())
        rows += [(entity, key, f"{amount(key, value)}: stays (prune: never)", "", since) for key, value in quotas]
    yield table((_ENTITY, *_KEYS), rows, indent=6, titled=False)


def _legend(plan: Plan) -> Line:
    actions = {change.action for change in plan.changes}
    signs = [f"{sign} {action.value}" for action, (sign, _) in _SIGN.items() if action in actions]
    if any(factor(key.before, key.after) for change in plan.changes for key in change.keys):
        signs.append("x0.5: the new value is half of the old one")
    return line(("Legend: ", Style.FAINT), (", ".join(signs), Style.FAINT), hang=8, pages=())


def _by_file(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """Return the changes of each file, the worst first; files by name, and last those that no file declares."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        file = next((key.source.file for key in change.keys if key.source is not None), "")
        groups.setdefault(file, []).append(change)
    return {file: sorted(groups[file], key=_worst_of) for file in sorted(groups, key=lambda file: (not file, file))}


def _worst_of(change: Change) -> float:
    return min(effect_order(direction(key), key.before, key.after) for key in change.keys)


def _changes(every: Sequence[Change], leaders: LeaderSpread | None) -> Iterator[Table]:
    groups = _by_file(every)
    rows: list[Cells | Line] = []
    for file, changes in groups.items():
        headed = bool(file) or len(groups) > 1
        above = line((file or _NO_FILE, Style.STRONG), pages=()) if headed else line()
        for change in changes:
            sign, style = _SIGN[change.action]
            entity = line((f"  {sign} ", style), (change.entity, style), pages=(change.entity,))
            for key in change.keys:
                way = direction(key)
                move = line(pages=(chip(way.value, _DIRECTIONS[way][0], value=effect_order(way, key.before, key.after)),))
                rows.append((above, entity, move, *_key(key, file, headed=headed)))
                if key.unit is not None or key.expiry is not None:
                    rows += [line((f"        {words}", Style.FAINT), hang=10) for words in value_sentences(key, leaders)]
            if change.note:
                rows.append(labelled("      note: ", Style.FAINT, (change.note, Style.FAINT)))
    across = (Column(title="file", across=True), _ENTITY, Column(title="effect", chosen=True, sorts=True))
    yield table((*across, *_KEYS), rows, indent=6, titled=False)


def _key(key: KeyChange, file: str, *, headed: bool = False) -> Cells:
    why = "" if headed and key.reason is Reason.ENTITY_NOT_IN_MANIFEST else _WHY[key.reason]
    place = "" if key.source is None else f"line {key.source.line}" if key.source.file == file else str(key.source)
    profile = () if key.profile is None else (", profile ", name_part(key.profile))
    times = factor(key.before, key.after)
    before, after = amount_part(key.key, key.before), amount_part(key.key, key.after)
    share = MessagePart(kind=PartKind.AMOUNT, text=times, value=_share(key) if times else None)
    remark = ", ".join(filter(None, (times, why, "not from this change" if key.as_before else "")))
    return (
        line(key_part(key.key), hang=0),
        line(before, " -> ", after, hang=0, pages=(before, " \N{RIGHTWARDS ARROW} ", after)),
        line((remark, Style.FAINT), hang=0, pages=(share, f" {_WHY[key.reason]}")),
        line((place, Style.FAINT), *profile, hang=0, pages=(*((key.source,) if key.source else ()), *profile)),
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
    yield line()
    yield line("kafka-quotas plan shows every change.")


def _share(key: KeyChange) -> float:
    """The new value as a share of the old one; infinite where that means nothing."""
    if key.before is None or key.after is None or not 0 < key.before < math.inf:
        return math.inf
    return key.after / key.before


def _guards(plan: Plan) -> Iterator[Block]:
    if not plan.guards:
        return
    yield heading("Guards", count=len(plan.guards), first=True)
    order = list(_GUARDS)
    spoken = sorted((g for g in plan.guards if g.status is not GuardStatus.PASSED), key=lambda guard: order.index(guard.status))
    yield from map(_guard, spoken)
    if spoken:
        yield line()
    if passed := [_guard(guard) for guard in plan.guards if guard.status is GuardStatus.PASSED]:
        yield Fold(title=line(pages=(f"{count_of(len(passed), 'guard')} passed",)), blocks=tuple(passed))


def _guard(guard: GuardResult) -> Line:
    word, style = _GUARDS[guard.status]
    shown = (chip(word, style), " ", name_part(guard.id), ": ", guard.message)
    match guard.status:
        case GuardStatus.PASSED:
            return line(pages=shown)
        case GuardStatus.ACCEPTED:
            return line((f"Guard {guard.id} is accepted: ", style), guard.message, pages=shown)
    advice = f" {guard.advice or ''}".rstrip()
    # Saved plans keep the advice as text, so it has no parts here either.
    how = f" {guard.advice or f'To accept, pass --accept {guard.id}.'}"
    return line((f"Guard {guard.id} needs acceptance: ", Style.WARN), guard.message, advice, pages=(*shown, how))


def cluster_title(cluster: ClusterIdentity) -> str:
    """``cluster prod-eu (4L6g3nShT-eMCtK--X86sw, Kafka 4.3, quotas by acme.Groups)``, with what is known."""
    known = [f"{cluster.id}"] if cluster.id else []
    known += [f"Kafka {cluster.kafka_version}"] if cluster.kafka_version else []
    known += [f"quotas by {cluster.quota_callback}"] if cluster.quota_callback else []
    name = f"cluster {display_name(cluster.name)}" if cluster.name else "the cluster"
    return f"{name} ({', '.join(known)})" if known else name


_ORIGINS: Final = {ObservedFrom.BROKER: "its brokers", ObservedFrom.ZOOKEEPER: "ZooKeeper", ObservedFrom.SNAPSHOT: "a snapshot"}


def read_words(observed: Observed) -> str:
    """``read from its brokers at 2026-01-02 12:00:00 UTC``."""
    return f"read from {_ORIGINS[observed.origin]} at {observed.at:%Y-%m-%d %H:%M:%S} UTC"


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


def summary_sentence(plan: Plan) -> str:
    """Counts of entities; for an empty plan, that nothing differs."""
    s = plan.summary
    rest = f"{s.unchanged:,} unchanged, {s.unmanaged:,} unmanaged"
    if not plan.changes and plan.undecided:
        return f"Nothing to write, but {undecided_words(plan)} ({rest})."
    if not plan.changes:
        return f"No changes: the cluster has what the manifests declare ({rest})."
    decide = f"; {undecided_words(plan)}" if plan.undecided else ""
    return f"{s.create:,} to create, {s.update:,} to update, {s.delete:,} to delete. {rest}{decide}."


def direction(key: KeyChange) -> ChangeDirection:
    """The direction of one key. A live value that is not a number counts as tightening, which is the careful side."""
    if key.after is None:
        return ChangeDirection.REMOVED
    if key.before is None:
        return ChangeDirection.FIRST_LIMIT
    return ChangeDirection.LOOSENS if key.after > key.before else ChangeDirection.TIGHTENS


_RISKS: Final = (ChangeDirection.REMOVED, ChangeDirection.TIGHTENS, ChangeDirection.FIRST_LIMIT, ChangeDirection.LOOSENS)


def effect_order(way: ChangeDirection, before: float | None, after: float | None) -> float:
    """Return a number that sorts changes by the size of their effect, the worst first.

    Removals come first, then cuts, the deepest first, then first limits, then raises, the largest first.
    """
    if before is None or after is None or not (0 < before < math.inf and 0 < after < math.inf):
        return _RISKS.index(way)
    return _RISKS.index(way) + (before / after if after > before else after / before)


def value_sentences(key: KeyChange | KeyDrift, leaders: LeaderSpread | None = None) -> Iterator[str]:
    """Yield what a value was computed from, why brokers change it, and when it expires; nothing for a plain number."""
    before, after = (key.before, key.after) if isinstance(key, KeyChange) else (key.live, key.desired)
    if key.unit is not None:
        yield f"declared: {unit_text(key.key, key.unit)}"
        brokers = key.unit.brokers if isinstance(key.unit, ClusterTotal) else None
        if key.brokers_before is not None and brokers is not None and before is not None and after is not None:
            absent = leaders.absent if leaders is not None else ()
            if isinstance(key.unit, ClusterTotal) and before == key.unit.per_broker:
                yield f"perBroker is the smaller limit of up to {count_of(key.brokers_before, 'broker')}, and {brokers} are up"
            else:
                yield rebalance_text(key.key, before, after, brokers_before=key.brokers_before, brokers=brokers, absent=absent)
    if key.expiry is not None:
        yield expiry_text(key.key, key.expiry)
