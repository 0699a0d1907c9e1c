"""An apply report for a terminal: every change that did not go through, then one sentence; and clusters one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model import ApplyReport, ApplyResult, ChangeStatus, ClusterFailure, ObservedFrom, escaped
from reconciler.render.findings_text import findings_lines
from reconciler.render.layout import Block, Line, Style, line, note_line
from reconciler.render.plan_sentences import cluster_title, withheld_words
from reconciler.resolution import callback_notes
from reconciler.text import all_changes, count_of, duration


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
        yield from map(note_line, callback_notes(report.cluster))
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
