"""An apply report for a terminal: every change that did not go through, then one sentence; and clusters one after the other."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from reconciler.errors import FileAccessError
from reconciler.model import (
    ApplyReport,
    ApplyResult,
    ChangeOutcome,
    ChangeStatus,
    ClusterFailure,
    Message,
    ObservedFrom,
    bucket_words,
    compose,
    escaped,
    flag_part,
    join_messages,
    key_part,
    name_part,
)
from reconciler.render.findings_text import findings_lines
from reconciler.render.layout import Block, Column, Line, Style, View, Words, chip, heading, labelled, line, note_line, table
from reconciler.render.plan_text import cluster_title
from reconciler.resolution import callback_notes
from reconciler.text import all_changes, amount_part, count_of, duration, percent_text, rate_part

if TYPE_CHECKING:
    from reconciler.model import WatchRecord


def apply_report_lines(report: ApplyReport, *, undo: Sequence[str] = ()) -> Iterator[Line]:
    """An apply report as lines: a count of applied changes, and each other change by name.

    ``undo``: the file of the report and the words that lead to the cluster, where the run can be taken back.
    """
    for outcome in report.outcomes:
        if outcome.status in (ChangeStatus.FAILED, ChangeStatus.UNKNOWN):
            code = f" (error {outcome.error_code})" if outcome.error_code is not None else ""
            words = escaped(outcome.error or "no answer")
            yield line((f"  {outcome.status.value}: ", Style.BAD), f"{outcome.change.entity}: {words}{code}")
    if report.facts.watch is not None:
        yield from _watch_lines(report.facts.watch)
    yield line(_report_headline(report))
    if report.result in (ApplyResult.DONE, ApplyResult.PARTIAL):
        yield from map(note_line, callback_notes(report.cluster))
    if report.message and report.result is not ApplyResult.DONE:
        yield line(f"{report.message[0].upper()}{report.message[1:].removesuffix('.')}.")
    if undo:
        yield labelled("To undo it: ", Style.FAINT, escaped(shlex.join(("kafka-quotas", "revert", *undo))))


def _watch_lines(watch: WatchRecord) -> Iterator[Line]:
    """Yield what the clients of each step showed, with the groups that were throttled."""
    for step in watch.steps:
        groups = f"  step {step.step}: {count_of(step.groups, 'quota group')} watched for {duration(step.seconds)}, "
        count = len(step.throttled)
        words = "none throttled" if not count else f"{count} throttled"
        yield line(groups, (words, Style.BAD if step.exceeding else Style.PLAIN))
        for group in step.throttled[:_MOST_GROUPS]:
            limit = "" if group.limit is None else compose(" of {limit}", limit=amount_part(group.key, group.limit))
            yield line(
                compose(
                    "    broker {broker}: {group} for {share} of the time at {rate}{limit} ({accepted} accepted)",
                    broker=name_part(escaped(group.broker)),
                    group=bucket_words(group.bucket),
                    share=percent_text(group.throttled),
                    rate=rate_part(group.key, group.rate),
                    limit=limit,
                    accepted=percent_text(group.accepted),
                )
            )


def _report_headline(report: ApplyReport) -> tuple[str, Style]:
    total = len(report.outcomes)
    took = "" if report.seconds is None else f" in {duration(max(report.seconds, 0.1))}"
    counts = ", ".join(f"{report.count(status)} {status.value.replace('_', ' ')}" for status in ChangeStatus)
    match report.result:
        case ApplyResult.NOTHING_TO_DO:
            words = "the cluster has every value of it" if report.message else "the cluster has every declared value already"
            return (f"Nothing to do: {words}.", Style.GOOD)
        case ApplyResult.DONE if report.validate_only:
            return (f"The cluster would accept {all_changes(total)}. Nothing was written.", Style.GOOD)
        case ApplyResult.DONE:
            return (f"Applied {count_of(total, 'change')}{took}, verified {_where(report)}.", Style.GOOD)
        case ApplyResult.REFUSED:
            return ("Refused. Nothing was written.", Style.BAD)
        case ApplyResult.FAILED:
            return (f"Failed. Nothing was written. {counts}.", Style.BAD)
        case ApplyResult.PARTIAL:
            return (f"Not complete: {counts}.", Style.BAD)


def failure_lines(failure: ClusterFailure) -> tuple[Line, ...]:
    """The reason why there is no result for a cluster, with its findings."""
    verdict = ("is skipped: ", Style.WARN) if failure.skipped else ("could not be read: ", Style.BAD)
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


_RESULTS: Final = {
    ApplyResult.DONE: "Applied",
    ApplyResult.NOTHING_TO_DO: "Nothing to do",
    ApplyResult.REFUSED: "Refused",
    ApplyResult.PARTIAL: "Applied in part",
    ApplyResult.FAILED: "Failed",
}
_STATUSES: Final = {
    ChangeStatus.APPLIED: ("written", Style.GOOD),
    ChangeStatus.FAILED: ("failed", Style.BAD),
    ChangeStatus.UNKNOWN: ("not known", Style.BAD),
    ChangeStatus.NOT_ATTEMPTED: ("not attempted", Style.FAINT),
}
_COLUMNS: Final = tuple(Column(title=title) for title in ("entity", "key", "before", "after", "result"))
_MOST_GROUPS: Final = 3
"""Throttled quota groups of one step that are shown."""


def apply_summary_view(report: ApplyReport, *, name: str) -> View:
    """The report of a run as Markdown and pages show it. Raises ``FileAccessError`` as ``apply_sentence``."""
    sentence = apply_sentence(report, name=name)
    return View(
        kind="apply",
        cluster=report.cluster.name,
        title=line(),
        answer=line(f"{_RESULTS[report.result]}: {sentence.rstrip('.')}."),
        blocks=tuple(_blocks(report)),
    )


def _blocks(report: ApplyReport) -> Iterator[Block]:
    if report.refused_by:
        which = "its id" if len(report.refused_by) == 1 else "their ids, one a line,"
        yield line(
            "Correct the values. To accept ",
            join_messages(Message((name_part(guard),)) for guard in report.refused_by),
            f" for one run instead, start this workflow by hand and write {which} into its input ",
            flag_part("accept"),
            ". An exception in ",
            flag_part("spec.accept"),
            " of the Cluster manifest leaves a trace in git.",
        )
    yield heading("Changes", count=len(report.outcomes))
    yield table(_COLUMNS, (row for outcome in report.outcomes for row in _rows(outcome)))


def _rows(outcome: ChangeOutcome) -> Iterator[tuple[Line | Words, ...]]:
    words, style = _STATUSES[outcome.status]
    error = f" {outcome.error}" if outcome.error else ""
    for key in outcome.change.keys:
        before, after = amount_part(key.key, key.before), amount_part(key.key, key.after)
        yield outcome.change.entity, key_part(key.key), before, after, line(chip(words, style), error, hang=0)


def apply_sentence(report: ApplyReport, *, name: str) -> str:
    """Return what happened as a sentence without a full stop, also of a run that ended before it had a plan.

    Raises ``FileAccessError`` for the report of a run that was not to write.
    """
    if report.validate_only:
        raise FileAccessError(f"{name} is the report of a run with --validate-only, which applies nothing: give another one")
    if report.result is ApplyResult.NOTHING_TO_DO:
        return "the cluster needed no change"
    if report.result is ApplyResult.DONE:
        took = f" in {duration(report.seconds)}" if report.seconds is not None else ""
        read_back = f"verified {_where(report)}" if report.verified else "not read back"
        return f"{_entities(report.count(ChangeStatus.APPLIED))} written{took}, {read_back}"
    reasons = ": ".join(text.strip().rstrip(".") for text in (report.failure_reason, report.message) if text)
    return f"{_written(report)}{f'; {reasons}' if reasons else ''}"


def _where(report: ApplyReport) -> str:
    if report.origin is ObservedFrom.ZOOKEEPER:
        return "in ZooKeeper"
    return "on every broker" if report.brokers is None else f"on {count_of(report.brokers, 'broker')}"


def _written(report: ApplyReport) -> str:
    if report.result is not ApplyResult.PARTIAL:
        return "nothing was written"
    counts = [(report.count(status), word) for status, (word, _) in _STATUSES.items()]
    counted = ", ".join(f"{_entities(count)} {word}" for count, word in counts if count)
    return f"not complete: {counted}" if counted else "not complete"


def _entities(count: int) -> str:
    return count_of(count, "entity", "entities")
