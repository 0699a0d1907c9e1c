"""How a run of apply ended, as the summary of a CI job: a sentence, what was written, and how to accept a guard there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.documents import ApplySummary
from reconciler.model import ApplyResult, ChangeOutcome, ChangeStatus, KeyChange, display_name
from reconciler.render.comment_rows import amount_markdown, entity_markdown, key_markdown
from reconciler.render.markdown_text import code, in_cell, prose, rows_that_fit, size
from reconciler.text import count_of, list_some

_HEADINGS: Final = {
    ApplyResult.DONE: "✅ applied",
    ApplyResult.NOTHING_TO_DO: "☑️ nothing to do",
    ApplyResult.REFUSED: "⛔ refused",
    ApplyResult.PARTIAL: "❌ applied in part",
    ApplyResult.FAILED: "❌ failed",
}
_STATUSES: Final = {
    ChangeStatus.APPLIED: "written",
    ChangeStatus.FAILED: "failed",
    ChangeStatus.UNKNOWN: "not known",
    ChangeStatus.NOT_ATTEMPTED: "not attempted",
}
_NAME: Final = 400
_FRAME: Final = 500


def apply_markdown(summary: ApplySummary, sentence: str, *, budget: int) -> str:
    """At most ``budget`` bytes. ``sentence``: what happened, without its full stop; it may quote strangers."""
    sign, _, heading = _HEADINGS[summary.result].partition(" ")
    name = f" to {code(display_name(summary.cluster.name))}" if summary.cluster.name else ""
    words = prose(sentence[:1].upper() + sentence[1:]).rstrip(".")
    top = [f"### {sign} Kafka quotas, apply{name}: {heading}", "", f"{words}.", ""]
    if summary.guards:
        top += [*_guards(summary.guards), ""]
    rows = [row for outcome in summary.outcomes for row in _rows(outcome)]
    kept = rows_that_fit(rows, budget - size(top) - _FRAME)
    table = ["| Entity | Quota | Before | After | Result |", "| --- | --- | ---: | ---: | --- |", *kept, ""] if kept else []
    left = len(rows) - len(kept)
    rest = [f"{count_of(left, 'more row is', 'more rows are')} in `report.json` of the run's artifact."] if left else []
    return "\n".join((*top, *table, *rest)).rstrip() + "\n"


def _guards(guards: tuple[str, ...]) -> Iterator[str]:
    names = list_some([code(guard) for guard in guards], len(guards))
    yield (
        f"Correct the values. To accept {names} for one run instead, start this workflow by hand and write "
        f"{'its id' if len(guards) == 1 else 'their ids, one a line,'} into its input `accept`. An exception in `spec.accept` of "
        "the Cluster manifest leaves a trace in git."
    )


def _rows(outcome: ChangeOutcome) -> Iterator[str]:
    for key in outcome.change.keys:
        cells = (
            in_cell(entity_markdown(outcome.change.entity, _NAME)),
            in_cell(key_markdown(key.key, _NAME)),
            in_cell(_value(key, key.before, "none")),
            in_cell(_value(key, key.after, "*removed*")),
            in_cell(_result(outcome)),
        )
        yield f"| {' | '.join(cells)} |"


def _value(key: KeyChange, value: float | None, absent: str) -> str:
    return absent if value is None else amount_markdown(key.key, value)


def _result(outcome: ChangeOutcome) -> str:
    words = _STATUSES[outcome.status]
    return f"{words}: {prose(outcome.error, limit=_NAME, begins_line=False)}" if outcome.error else words
