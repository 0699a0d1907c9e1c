"""One verdict over plan and backtest, and the at most three sentences that stand first in a comment."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.features.pull_requests.comment_rows import (
    ChangeRow,
    RowState,
    changed_groups,
    group_markdown,
    long_words,
    over_markdown,
)
from reconciler.model import BacktestReport, Finding, GroupRows, Plan, Severity, Verdict
from reconciler.render import code, prose, undecided_words
from reconciler.text import count_of, list_some

_MOST_SENTENCES: Final = 3
_MOST_GUARDS: Final = 5
_CORRECT: Final = "Correct the manifests, then push again."
_UNKNOWN: Final = (RowState.INCONCLUSIVE, RowState.NOT_RECORDED, RowState.NOT_CHECKED, RowState.NO_TRAFFIC)


class CommentVerdict(enum.StrEnum):
    """What a reviewer must know first."""

    BLOCKED = "blocked"
    """It cannot be applied: errors, or a rule of the policy that the backtest violates."""
    NEEDS_ACCEPTANCE = "needs acceptance"
    """A guard tripped that is not accepted, or changes of an owner are withheld."""
    THROTTLES = "throttles clients"
    """Clients would or might be throttled, and no rule forbids it: a reviewer decides."""
    NOT_CHECKED = "not checked"
    """Nothing speaks against it, and for at least one change nothing is known about its effect."""
    READY = "ready"
    NOT_REMOVED = "not removed"
    """Nothing is written, although entities left the manifests."""
    NO_CHANGE = "no change"

    @property
    def sign(self) -> str:
        """The mark before the heading."""
        return _LOOKS[self][0]

    @property
    def alert(self) -> str:
        """The kind of alert, as Markdown of forges spells it."""
        return _LOOKS[self][1]


_LOOKS: Final = {
    CommentVerdict.BLOCKED: ("⛔", "CAUTION"),
    CommentVerdict.NEEDS_ACCEPTANCE: ("⚠️", "WARNING"),
    CommentVerdict.THROTTLES: ("🔴", "WARNING"),
    CommentVerdict.NOT_CHECKED: ("❓", "IMPORTANT"),
    CommentVerdict.READY: ("✅", "TIP"),
    CommentVerdict.NOT_REMOVED: ("⚠️", "WARNING"),
    CommentVerdict.NO_CHANGE: ("☑️", "NOTE"),
}


def judge_comment(plan: Plan, report: BacktestReport | None, rows: Sequence[ChangeRow]) -> CommentVerdict:
    """The verdict over both. ``rows``: as ``change_rows`` makes them of the same plan and report."""
    states = {row.state for row in rows}
    refused = report is not None and (report.refused or errors_in(report.findings))
    all_withheld = plan.withheld and not plan.changes and not any(each.guards for each in plan.withheld)
    if errors_in(plan.findings) or refused or all_withheld:
        return CommentVerdict.BLOCKED
    if plan.tripped or plan.withheld:
        return CommentVerdict.BLOCKED if any(guard.blocks for guard in plan.tripped) else CommentVerdict.NEEDS_ACCEPTANCE
    if states & {RowState.REJECTED, RowState.THROTTLED, RowState.POSSIBLE}:
        return CommentVerdict.THROTTLES
    if states & set(_UNKNOWN):
        return CommentVerdict.NOT_CHECKED
    if states - {RowState.KEPT} or plan.changes:
        return CommentVerdict.READY
    return CommentVerdict.NOT_REMOVED if plan.kept else CommentVerdict.NO_CHANGE


def errors_in(findings: Sequence[Finding]) -> int:
    """How many findings are errors."""
    return sum(finding.severity is Severity.ERROR for finding in findings)


def findings_sentence(findings: Sequence[Finding]) -> str:
    """What findings without a plan mean."""
    if not errors_in(findings):
        return "The manifests have no errors, and no plan was made."
    return f"{_errors(findings)}, so these manifests cannot be planned. {_CORRECT}"


def _errors(findings: Sequence[Finding]) -> str:
    return f"**{count_of(errors_in(findings), 'finding is an error', 'findings are errors')}**"


def alert_sentences(
    plan: Plan, report: BacktestReport | None, rows: Sequence[ChangeRow], *, verdict: CommentVerdict, limit: int
) -> list[str]:
    """At most three sentences in Markdown: the answer, what was not checked, the next step."""
    every = (*_problems(plan, report, rows, limit), *_next(plan, verdict))
    return list(every[:_MOST_SENTENCES])


def _problems(plan: Plan, report: BacktestReport | None, rows: Sequence[ChangeRow], limit: int) -> Iterator[str]:
    if errors_in(plan.findings):
        yield f"{_errors(plan.findings)}, so this plan cannot be applied."
    elif not plan.complete:
        yield "**Only some manifests were planned**, so nothing is pruned."
    if report is not None:
        yield from _backtest(report, rows, limit)
    if plan.tripped:
        names = list_some([code(guard.id) for guard in plan.tripped], _MOST_GUARDS)
        yield f"**{count_of(len(plan.tripped), 'guard needs acceptance', 'guards need acceptance')}**: {names}."
    if plan.withheld:
        owners = [code(each.owner) if each.owner is not None else "no owner" for each in plan.withheld]
        yield f"**Changes of {count_of(len(plan.withheld), 'owner')} are withheld**: {list_some(owners, _MOST_GUARDS)}."
    if report is None and any(row.unknown for row in rows):
        yield "**Not checked**: no backtest ran, so nothing is known about the effect on clients."


def _backtest(report: BacktestReport, rows: Sequence[ChangeRow], limit: int) -> Iterator[str]:
    if report.refused:
        yield f"**The backtest rejects this change**: {_failed_rules(report)}."
    unknown = sum(row.unknown for row in rows)
    missing = f"**{_of(unknown, len(rows), 'change')} {'is' if unknown == 1 else 'are'} not checked**" if unknown else ""
    if (judged := report.judged) is not None:
        less = judged.judged < judged.changed
        missing = f"**{_of(judged.judged, judged.changed, 'changed quota')} could be judged**" if less else ""
    if missing and unknown and not changed_groups(report):
        limits, effects = _agree(unknown, "its limit", "their limits"), _agree(unknown, "its effect", "their effects")
        yield f"{missing}: no recorded traffic uses {limits}, so nothing is known about {effects}."
        return
    yield f"{_of_changed(report, limit)}{f', and {missing}' if missing else ''}."


def _failed_rules(report: BacktestReport) -> str:
    """The words of the first rule that fails, and how many others do."""
    first, *others = [rule for rule in report.rules if not rule.holds]
    more = f", and {count_of(len(others), 'other rule')} {_agree(len(others), 'fails', 'fail')}" if others else ""
    return f"{prose(first.words.rstrip('.'), begins_line=False)}{more}"


def _of_changed(report: BacktestReport, limit: int) -> str:
    """Of each quota group once, by its worst broker."""
    changed = changed_groups(report)
    history = f"In {history_length(report)} of traffic"
    count = {verdict: sum(group.verdict is verdict for group in changed) for verdict in Verdict}
    for verdict, verb in ((Verdict.THROTTLED, "would have"), (Verdict.POSSIBLE, "might have")):
        if count[verdict]:
            groups = f"**{_of(count[verdict], len(changed), 'quota group')}**"
            first = next(group for group in changed if group.verdict is verdict)
            return f"{history} the new limits {verb} throttled {groups}{_worst(first, limit) if len(changed) > 1 else ''}"
    if count[Verdict.INCONCLUSIVE]:
        groups = _of(count[Verdict.INCONCLUSIVE], len(changed), "quota group")
        return f"**Inconclusive**: {history_length(report)} of traffic does not show enough to clear {groups}"
    if changed:
        return f"{history} the new limits would have throttled **none** of {count_of(len(changed), 'quota group')}"
    return f"{history} no limit of a recorded client changes"


def _worst(group: GroupRows, limit: int) -> str:
    over = f": {over_markdown(group)}" if group.verdict is Verdict.THROTTLED else ""
    return f", most of all {group_markdown(group.worst, limit)}{over}"


def _agree(count: int, singular: str, many: str) -> str:
    return singular if count == 1 else many


def history_length(report: BacktestReport) -> str:
    """``24 h``, from the first to the last request."""
    return long_words((report.provenance.end - report.provenance.start).total_seconds())


def _of(count: int, total: int, noun: str) -> str:
    return f"{count:,} of {count_of(total, noun)}"


def _next(plan: Plan, verdict: CommentVerdict) -> Iterator[str]:
    match verdict:
        case CommentVerdict.BLOCKED:
            yield _CORRECT
        case CommentVerdict.NOT_REMOVED | CommentVerdict.NO_CHANGE if plan.undecided:
            yield f"The plan writes nothing, but {prose(undecided_words(plan), begins_line=False)}."
        case CommentVerdict.NO_CHANGE:
            yield "No changes: the cluster has every declared value."
        case CommentVerdict.NEEDS_ACCEPTANCE if plan.withheld and plan.changes:
            yield "After the merge, `kafka-quotas apply` writes the changes in the table, and not the withheld ones."
        case CommentVerdict.READY:
            yield "After the merge, `kafka-quotas apply` writes exactly these changes."
        case CommentVerdict.THROTTLES:
            yield "Raise the limits, or decide that these clients may be throttled."
