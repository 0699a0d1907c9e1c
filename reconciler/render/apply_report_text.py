"""An apply report for a terminal: one sentence first, then every change that did not go through."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import ApplyReport, ApplyResult, ChangeStatus, ObservedFrom, escaped
from reconciler.render.findings_text import findings_lines
from reconciler.render.styled import Line, Style, line
from reconciler.text import count_of, duration


def apply_report_lines(report: ApplyReport) -> tuple[Line, ...]:
    """The report; applied changes are a count, everything else is named."""
    return tuple(_lines(report))


def _lines(report: ApplyReport) -> Iterator[Line]:
    for outcome in report.outcomes:
        if outcome.status in (ChangeStatus.FAILED, ChangeStatus.UNKNOWN):
            code = f" (error {outcome.error_code})" if outcome.error_code is not None else ""
            words = escaped(outcome.error or "no answer")
            yield line((f"  {outcome.status.value}: ", Style.BAD), f"{outcome.change.entity}: {words}{code}")
    yield from findings_lines(report.findings)
    yield line(_headline(report))
    if report.message and report.result is not ApplyResult.DONE:
        yield line(f"{report.message[0].upper()}{report.message[1:].removesuffix('.')}.")


def _headline(report: ApplyReport) -> tuple[str, Style]:
    total = len(report.outcomes)
    match report.result:
        case ApplyResult.NOTHING_TO_DO:
            words = "the cluster has every value of it" if report.message else "the cluster has every declared value already"
            return (f"Nothing to do: {words}.", Style.GOOD)
        case ApplyResult.DONE if report.validate_only:
            return (f"The cluster would accept all {count_of(total, 'change')}. Nothing was written.", Style.GOOD)
        case ApplyResult.DONE:
            return (f"Applied {count_of(total, 'change')}{_time(report)}, verified {_where(report)}.", Style.GOOD)
        case ApplyResult.REFUSED:
            return ("Refused; nothing was written.", Style.BAD)
        case ApplyResult.FAILED:
            return (f"Failed; nothing was written. {_rest(report)}", Style.BAD)
        case ApplyResult.PARTIAL:
            return (f"Not complete: {_rest(report)}", Style.BAD)


def _time(report: ApplyReport) -> str:
    return "" if report.seconds is None else f" in {duration(max(report.seconds, 0.1))}"


def _where(report: ApplyReport) -> str:
    if report.origin is ObservedFrom.ZOOKEEPER:
        return "in ZooKeeper"
    return "on every broker" if report.brokers is None else f"on {count_of(report.brokers, 'broker')}"


def _rest(report: ApplyReport) -> str:
    counts = [(report.count(status), status.value.replace("_", " ")) for status in ChangeStatus]
    return ", ".join(f"{n} {word}" for n, word in counts) + "."
