"""How a run of apply ended, in one sentence and as the summary of a CI job: what was written, and how to accept a guard there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.documents import ApplySummary
from reconciler.errors import FileAccessError
from reconciler.model import (
    ApplyResult,
    ChangeOutcome,
    ChangeStatus,
    Message,
    display_name,
    flag_part,
    join_messages,
    key_part,
    name_part,
)
from reconciler.render.layout import Block, Column, Line, Style, View, Words, chip, heading, line, table
from reconciler.text import amount_part, count_of, duration, list_some

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
_MOST_OWNERS: Final = 5


def apply_summary_view(report: ApplySummary, *, name: str) -> View:
    """The report of a run as Markdown and pages show it. Raises ``FileAccessError`` as ``apply_sentence``."""
    sentence = apply_sentence(report, name=name)
    return View(
        kind="apply",
        cluster=report.cluster.name,
        title=line(),
        answer=line(f"{_RESULTS[report.result]}: {sentence.rstrip('.')}."),
        blocks=tuple(_blocks(report)),
    )


def _blocks(report: ApplySummary) -> Iterator[Block]:
    if report.guards:
        which = "its id" if len(report.guards) == 1 else "their ids, one a line,"
        yield line(
            "Correct the values. To accept ",
            join_messages(Message((name_part(guard),)) for guard in report.guards),
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


def apply_sentence(report: ApplySummary, *, name: str) -> str:
    """What happened, without a full stop; also of a run that ended before it had a plan.

    Raises ``FileAccessError`` for the report of a run that was not to write.
    """
    if report.validate_only:
        raise FileAccessError(f"{name} is the report of a run with --validate-only, which applies nothing: give another one")
    if report.result is ApplyResult.NOTHING_TO_DO and not report.withheld:
        return "the cluster needed no change"
    if report.result is ApplyResult.DONE:
        count = report.counts[ChangeStatus.APPLIED]
        took = f" in {duration(report.seconds)}" if report.seconds is not None else ""
        written = f"{_entities(count)} written{took}, {_read_back(report, count)}"
        if report.withheld:
            return f"{written}; {_withheld(report)}"
        return written
    reasons = ": ".join(text.strip().rstrip(".") for text in (report.failure_reason, report.message) if text)
    return f"{_written(report.result, report.counts)}{f'; {reasons}' if reasons else ''}"


def _withheld(report: ApplySummary) -> str:
    owners = [
        f"{display_name(withheld.owner) if withheld.owner is not None else 'no owner'} ({_entities(len(withheld.entities))})"
        for withheld in report.withheld
    ]
    return f"withheld for {list_some(owners, _MOST_OWNERS)}"


def _read_back(report: ApplySummary, count: int) -> str:
    if not report.verified:
        return "not read back"
    if report.brokers is not None:
        return f"verified on {count_of(report.brokers, 'broker')}"
    return f"and every broker shows {'it' if count == 1 else 'them'}"


def _written(result: ApplyResult, counts: Mapping[ChangeStatus, int]) -> str:
    if result is not ApplyResult.PARTIAL:
        return "nothing was written"
    words = {
        ChangeStatus.APPLIED: "written",
        ChangeStatus.FAILED: "failed",
        ChangeStatus.UNKNOWN: "not known",
        ChangeStatus.NOT_ATTEMPTED: "not attempted",
    }
    counted = ", ".join(f"{_entities(counts[status])} {word}" for status, word in words.items() if counts[status])
    return f"not complete: {counted}" if counted else "not complete"


def _entities(count: int) -> str:
    return count_of(count, "entity", "entities")
