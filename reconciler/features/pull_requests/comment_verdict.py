"""One verdict over plan and backtest: as the sentences of a comment, and as the status that a forge can require.

A status that lets a merge pass where ``apply`` would refuse the plan is worse than none: each case that is not known to be
harmless stops the merge.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.pull_requests.comment_rows import ChangeRow, RowState, changed_groups
from reconciler.features.pull_requests.comment_table import entity_markdown, group_name_markdown, unbroken
from reconciler.model import BacktestReport, Finding, Plan, Severity, Verdict, display_name
from reconciler.render import code, prose, shorten, undecided_words
from reconciler.text import count_of, duration, list_some

_MOST_NAMED: Final = 2
_NAME: Final = 100
_CORRECT: Final = "Correct the manifests, then push again."


class CommentVerdict(enum.StrEnum):
    """What a reviewer must know first."""

    BLOCKED = "blocked"
    """It cannot be applied: errors, or a rule of the policy that the backtest violates."""
    NEEDS_ACCEPTANCE = "needs acceptance"
    """A guard tripped that is not accepted."""
    THROTTLES = "throttles clients"
    """Clients would or might be throttled, and no rule forbids it: a reviewer decides."""
    INCONCLUSIVE = "inconclusive"
    """Nothing speaks against it, and the evidence about at least one change is too thin."""
    NOT_CHECKED = "not checked"
    """Nothing speaks against it, and there is no evidence about at least one change."""
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
    CommentVerdict.INCONCLUSIVE: ("❓", "IMPORTANT"),
    CommentVerdict.NOT_CHECKED: ("⚪", "IMPORTANT"),
    CommentVerdict.READY: ("✅", "TIP"),
    CommentVerdict.NOT_REMOVED: ("⚠️", "WARNING"),
    CommentVerdict.NO_CHANGE: ("☑️", "NOTE"),
}


def judge_comment(plan: Plan, report: BacktestReport | None, rows: Sequence[ChangeRow]) -> CommentVerdict:
    """The verdict over both. ``rows``: as ``change_rows`` makes them of the same plan and report."""
    states = {row.state for row in rows}
    refused = report is not None and (report.refused or errors_in(report.findings))
    if errors_in(plan.findings) or refused:
        return CommentVerdict.BLOCKED
    if plan.tripped:
        return CommentVerdict.NEEDS_ACCEPTANCE
    if states & {RowState.REJECTED, RowState.THROTTLED, RowState.POSSIBLE}:
        return CommentVerdict.THROTTLES
    if states & {RowState.INCONCLUSIVE, RowState.NOT_CHECKED, RowState.NO_CLIENT}:
        return CommentVerdict.INCONCLUSIVE if RowState.INCONCLUSIVE in states else CommentVerdict.NOT_CHECKED
    if states - {RowState.KEPT} or plan.changes:
        return CommentVerdict.READY
    return CommentVerdict.NOT_REMOVED if plan.kept else CommentVerdict.NO_CHANGE


def errors_in(findings: Sequence[Finding]) -> int:
    """Return the number of findings that are errors."""
    return sum(finding.severity is Severity.ERROR for finding in findings)


def findings_sentence(findings: Sequence[Finding]) -> str:
    """Return a sentence that states what findings without a plan mean."""
    if not errors_in(findings):
        return "The manifests have no errors, and no plan was made."
    return f"{_errors(findings)}, so these manifests cannot be planned. {_CORRECT}"


def _errors(findings: Sequence[Finding]) -> str:
    return f"**{count_of(errors_in(findings), 'finding is an error', 'findings are errors')}**"


def alert_sentences(
    plan: Plan, report: BacktestReport | None, rows: Sequence[ChangeRow], *, verdict: CommentVerdict, unchecked: str
) -> list[str]:
    """Sentences in Markdown: why the verdict is what it is, what was judged, what was not, what a reviewer decides.

    ``unchecked``: why there is no report.
    """
    sentences = list(_problems(plan, report, rows, unchecked))
    if plan.undecided and verdict in (CommentVerdict.NOT_REMOVED, CommentVerdict.NO_CHANGE):
        sentences.append(f"The plan writes nothing, but {prose(undecided_words(plan), begins_line=False)}.")
    elif verdict is CommentVerdict.NO_CHANGE:
        sentences.append("No changes: the cluster has every declared value.")
    elif verdict is CommentVerdict.READY:
        sentences.append("After the merge, `kafka-quotas apply` writes exactly these changes.")
    return sentences


def _problems(plan: Plan, report: BacktestReport | None, rows: Sequence[ChangeRow], unchecked: str) -> Iterator[str]:
    if errors_in(plan.findings):
        yield f"{_errors(plan.findings)}, so this plan cannot be applied."
    elif not plan.complete:
        yield "**Only some manifests were planned**, so nothing is pruned."
    if report is None and any(row.unknown for row in rows):
        yield f"**Nothing was checked against traffic**: {unchecked}"
    if report is not None:
        yield from _failed_rules(report)
        yield f"{_of_changed(report)}."
        yield from _not_checked(report, rows)
    if tripped := [code(guard.id) for guard in plan.tripped]:
        words = count_of(len(tripped), "guard needs acceptance", "guards need acceptance")
        yield f"**{words}**: {list_some(tripped, _MOST_NAMED)}."


def _failed_rules(report: BacktestReport) -> Iterator[str]:
    """The first rule that fails, in the words of the policy, and how many others do."""
    failed = [rule for rule in report.rules if not rule.holds]
    if not failed:
        return
    first, *others = failed
    whose = [group_name_markdown(bucket.bucket, _NAME) for bucket in first.failed]
    whose += [entity_markdown(change.entity, _NAME) for change in first.unjudged]
    words = prose((first.reason or first.words).rstrip("."), begins_line=False)
    more = f", and {count_of(len(others), 'other rule fails', 'other rules fail')}" if others else ""
    yield f'**Rule "{words}" fails** for {list_some(list(dict.fromkeys(whose)), _MOST_NAMED)}{more}.'


def _not_checked(report: BacktestReport, rows: Sequence[ChangeRow]) -> Iterator[str]:
    unknown = [row for row in rows if row.unknown]
    count, total, noun, judged = len(unknown), len(rows), "change", report.judged
    if judged is not None:
        count, total, noun = judged.without_traffic, judged.changed, "changed quota"
    why = " (no recorded traffic)" if unknown and all(row.unjudged is not None for row in unknown) else ""
    if count:
        yield f"**Not checked: {_of(count, total, noun)}**{why}."
    if judged is not None and judged.too_little:
        yield f"**Inconclusive: {_of(judged.too_little, total, noun)}** (too little recorded traffic)."


def _of_changed(report: BacktestReport) -> str:
    """Return a sentence about changed quota groups, each counted once by its worst broker."""
    changed = changed_groups(report)
    history = f"In {history_length(report)} of traffic"
    count = {verdict: sum(group.verdict is verdict for group in changed) for verdict in Verdict}
    for verdict, verb in ((Verdict.THROTTLED, "would have"), (Verdict.POSSIBLE, "might have")):
        if count[verdict]:
            return f"{history} the new limits {verb} throttled **{_of(count[verdict], len(changed), 'quota group')}**"
    if count[Verdict.INCONCLUSIVE]:
        groups = _of(count[Verdict.INCONCLUSIVE], len(changed), "quota group")
        return f"**Inconclusive**: {history_length(report)} of traffic does not show enough to clear {groups}"
    if changed:
        return f"{history} the new limits would have throttled **none** of {count_of(len(changed), 'quota group')}"
    return f"{history} no limit of a recorded client changes"


def history_length(report: BacktestReport) -> str:
    """``24 h``, from the first to the last request."""
    return unbroken(duration((report.provenance.end - report.provenance.start).total_seconds()))


def _of(count: int, total: int, noun: str) -> str:
    return f"{count:,} of {count_of(total, noun)}"


def way_out(plan: Plan, report: BacktestReport | None, rows: Sequence[ChangeRow]) -> str | None:
    """Return what the author can do now, fixes before exceptions: ``To pass: ...``. ``None`` where nothing stands in the way."""
    steps = []
    if errors_in(plan.findings):
        steps.append("correct the manifests")
    low = [row for row in rows if row.safe is not None]
    if low:
        steps.append(f"raise {count_of(len(low), 'limit')} to safe values")
    if report is not None and report.refused:
        steps.append("or ask the owner of the rule" if low else "ask the owner of the rule")
    if plan.tripped:
        steps.append("or merge an exception first" if low else "change the values or merge an exception")
    if kept := [row for row in rows if row.state is RowState.KEPT]:
        steps.append(f"to remove {count_of(len(kept), 'kept limit')}, declare the entity with {code('quotas: {}')}")
    if not steps:
        return None
    return f"To pass: {', '.join(steps)}.".replace("To pass: to remove", "To remove", 1)


_MOST_OF_NAME: Final = 120


class Conclusion(enum.StrEnum):
    """What a forge may do with the pull request, in GitHub's words. The last two stop a merge that requires the status."""

    SUCCESS = "success"
    NEUTRAL = "neutral"
    """A reviewer decides: nothing was checked against traffic, or clients would be throttled and no rule forbids it."""
    ACTION_REQUIRED = "action_required"
    """A guard tripped that can be accepted."""
    FAILURE = "failure"
    """Errors, a guard that cannot be accepted, a rule that fails, or no plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCheck:
    """The status of one cluster. ``title``: one line. ``summary``: Markdown."""

    conclusion: Conclusion
    title: str
    summary: str = ""

    @property
    def passes(self) -> bool:
        """True when a branch that requires the status takes the pull request."""
        return self.conclusion in (Conclusion.SUCCESS, Conclusion.NEUTRAL)


NO_PLAN: Final = StatusCheck(
    conclusion=Conclusion.FAILURE, title="No plan", summary="No plan of this commit could be made. The log has the reason."
)
NOT_CHANGED: Final = StatusCheck(
    conclusion=Conclusion.SUCCESS, title="Not changed", summary="This commit does not change the cluster."
)


def status_name(cluster: str) -> str:
    """``kafka-quotas/prod-eu``, as a ruleset names it."""
    return f"kafka-quotas/{shorten(display_name(cluster), _MOST_OF_NAME)}"


def check_of(plan: Plan | None, verdict: CommentVerdict, sentences: Sequence[str]) -> StatusCheck:
    """The status that goes with a comment. ``sentences``: those of its alert, in Markdown."""
    conclusion = Conclusion.NEUTRAL
    if verdict is CommentVerdict.BLOCKED:
        conclusion = Conclusion.FAILURE
    elif plan is not None and not plan.applyable:
        conclusion = Conclusion.ACTION_REQUIRED
    elif verdict in (CommentVerdict.READY, CommentVerdict.NO_CHANGE):
        conclusion = Conclusion.SUCCESS
    return StatusCheck(conclusion=conclusion, title=verdict.value.capitalize(), summary=" ".join(sentences))
