"""The answer of ``rightsize``: for people as a table with the worst first, and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.rightsizing.measuring import SizingReport
from reconciler.features.rightsizing.sizing import QuotaUse, SizedQuota, Sizing
from reconciler.manifest import SizingRules
from reconciler.model import Provenance, Verdict, bucket_words, display_name
from reconciler.render import Block, Column, Line, Style, View, chip, heading, labelled, line, table
from reconciler.text import count_of, length_text, percent_text, rate

_LOOKS: Final = {
    Sizing.RAISE: ("to raise", Style.BAD),
    Sizing.LOWER: ("to lower", Style.UPDATE),
    Sizing.UNUSED: ("unused", Style.UPDATE),
    Sizing.INCONCLUSIVE: ("inconclusive", Style.WARN),
    Sizing.NOT_CHECKED: ("not checked", Style.WARN),
    Sizing.EXCLUDED: ("excluded", Style.FAINT),
    Sizing.FITS: ("fits", Style.GOOD),
}
_OUTCOMES: Final = {Verdict.CLEAR: Style.GOOD, Verdict.THROTTLED: Style.BAD}
_COLUMNS: Final = (
    Column(title="quota", across=True),
    Column(title="verdict"),
    Column(title="limit", to_the_right=True),
    Column(title="highest rate", to_the_right=True),
    Column(title="proposed", to_the_right=True),
    Column(title="backtest"),
    Column(title="why", least=24),
)
MOST_ROWS: Final = 200
"""Quotas of one verdict that are listed for people; documents have all."""


def sizing_view(report: SizingReport) -> View:
    """Every quota but those that fit, the worst first, and how many fit."""
    where = display_name(report.cluster) if report.cluster is not None else "the cluster"
    return View(
        kind="rightsize",
        cluster=report.cluster,
        title=line(("Limits of ", Style.STRONG), (where, Style.STRONG), f", {history_words(report)}"),
        answer=line((sizing_sentence(report), Style.STRONG)),
        blocks=tuple(_blocks(report)),
    )


def history_words(report: SizingReport) -> str:
    """The time and the brokers of the traffic, as a clause."""
    history = report.history
    seconds = (history.end - history.start).total_seconds()
    length = f"{length_text(seconds)}, {count_of(history.brokers, 'broker')}"
    return f"traffic of {history.start:%Y-%m-%d %H:%M} to {history.end:%Y-%m-%d %H:%M} UTC ({length})"


def sizing_sentence(report: SizingReport) -> str:
    """Return how many limits have each verdict, and how many changes are proposed, as sentences."""
    counts = [f"{count:,} {_LOOKS[sizing][0]}" for sizing, count in counts_of_sizings(report).items() if count]
    proposed = len(report.proposed)
    change = f"{count_of(proposed, 'change')} proposed" if proposed else "No change is proposed"
    return f"{change}. Of {count_of(len(report.quotas), 'limit')}: {', '.join(counts) or 'none'}."


def _blocks(report: SizingReport) -> Iterator[Block]:
    yield line()
    for sizing in Sizing:
        quotas = [quota for quota in report.quotas if quota.sizing is sizing]
        if not quotas or (sizing is Sizing.FITS and not any(quota.is_proposed for quota in quotas)):
            continue
        shown = [quota for quota in quotas if sizing is not Sizing.FITS or quota.is_proposed][:MOST_ROWS]
        title = _LOOKS[sizing][0].capitalize()
        yield heading(title, f"{title}:", count=len(quotas))
        yield quota_table(shown)
        if len(quotas) > len(shown) and sizing is not Sizing.FITS:
            yield line((f"  and {len(quotas) - len(shown):,} more. --format json lists all", Style.FAINT))
        yield line()
    yield from (labelled("Note: ", Style.FAINT, note) for note in report.notes)


def quota_table(quotas: Sequence[SizedQuota]) -> Block:
    """One row for each, and below it why a proposed value is not written."""
    return table(_COLUMNS, (each for quota in quotas for each in _rows(quota)), indent=4)


def _rows(quota: SizedQuota) -> Iterator[tuple[Line | str | tuple[str, Style], ...] | Line]:
    key, use, outcome = quota.key.value, quota.use, quota.outcome
    owner = f" ({display_name(quota.owner)})" if quota.owner is not None else ""
    name = line("  ", quota.entity, f" {key}", (owner, Style.FAINT), pages=(quota.entity, f" {key}", (owner, Style.FAINT)))
    proposed = "" if quota.value is None else rate(key, quota.value)
    checked = ("", Style.FAINT)
    if outcome is not None:
        over = f" {percent_text(outcome.over)}" if outcome.verdict is Verdict.THROTTLED else ""
        checked = (f"{outcome.verdict.value}{over}", _OUTCOMES.get(outcome.verdict, Style.WARN))
    yield (
        name,
        line(chip(*_LOOKS[quota.sizing]), hang=0),
        rate(key, quota.limit),
        "" if use.verdict is None else rate(key, use.highest),
        (proposed, Style.FAINT if quota.left is not None else Style.STRONG),
        checked,
        line(_reason(quota), hang=0),
    )
    if quota.left is not None:
        yield line(("        Left: ", Style.WARN), quota.left, hang=10, pages=(("Left as it is: ", Style.WARN), quota.left))


def _reason(quota: SizedQuota) -> str:
    groups, fullest = quota.use.groups, quota.use.fullest
    if groups < 2 or fullest is None:
        return quota.reason
    return f"{quota.reason} ({bucket_words(fullest)}, of {count_of(groups, 'quota group')})"


def counts_of_sizings(report: SizingReport) -> Mapping[Sizing, int]:
    """Return how many quotas have each verdict."""
    return {each: sum(quota.sizing is each for quota in report.quotas) for each in Sizing}


RIGHTSIZE: Final = Document(
    cls=SizingReport,
    name="rightsize",
    title="kafka-quotas rightsize",
    codec=VALUES.extended(
        {
            SizingReport: row("cluster history rules summary quotas notes", summary=counts_of_sizings),
            Provenance: row("from=start to=end days source brokers"),
            SizingRules: row("lower_below days changes"),
            SizedQuota: row("entity key owner limit verdict=sizing reason *use value left backtest=outcome source"),
            QuotaUse: row("highest safe quota_groups=groups first_request=first last_request=last"),
        }
    ),
)
