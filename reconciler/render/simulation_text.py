"""A simulation: the answer, who is throttled then, which limits change, and where the traffic is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reconciler.model import (
    BacktestReport,
    BucketName,
    BucketVerdict,
    Coverage,
    GroupRows,
    Provenance,
    Simulation,
    Verdict,
    broker_words,
    group_verdicts,
)
from reconciler.render.backtest_sentences import (
    VERDICT_STYLES,
    after_text,
    group_title,
    heading_lines,
    history_lines,
    limit_text,
    more_lines,
    over_words,
    peak_text,
    report_view,
    rule_sentences,
)
from reconciler.render.layout import Block, Column, Style, View, labelled, line, table
from reconciler.render.metric_sentences import over_text
from reconciler.text import count_of, rate

_SHOWN: Final = 30
_GROUPS: Final = (
    Column(title="then"),
    Column(title="today"),
    Column(title="quota group", least=18),
    Column(title="limit then", least=10),
    Column(title="peak then", least=11),
    Column(title="over", to_the_right=True),
    Column(title="worst on", least=8),
)
_LIMITS: Final = (
    Column(title="quota", least=18),
    Column(title="today", least=8),
    Column(title="then", least=8),
    Column(title="declared", least=10),
)
_LOADS: Final = (
    Column(title="broker"),
    Column(title="key", least=12),
    Column(title="average today", to_the_right=True),
    Column(title="then", to_the_right=True),
)
_BROKERS: Final = (
    Column(title="broker"),
    Column(title="then"),
    Column(title="peak", least=12),
    Column(title="over", least=20),
)


def simulation_view(report: BacktestReport, simulation: Simulation, *, details: bool = False) -> View:
    """The report of a simulation, readable from top to bottom. ``details``: with each broker."""
    return report_view(report, "simulation", _body(report, simulation, details=details))


def _body(report: BacktestReport, simulation: Simulation, *, details: bool) -> Iterator[Block]:
    """All but the answer."""
    for sentence, passes in rule_sentences(report.rules):
        yield line((sentence, Style.PLAIN if passes else Style.BAD))
    yield from _over(report, simulation, details=details)
    yield from _limits(simulation, details=details)
    yield from _loads(simulation, details=details)
    yield from heading_lines("How it is simulated")
    for assumption in simulation.assumptions:
        yield line(f"  {assumption}")
    yield from history_lines(_as_recorded(report.provenance, simulation), samples=False)
    for gap in simulation.recorded.gaps:
        yield labelled("  Warning: ", Style.WARN, f"{gap}. Brokers that take over its traffic lack it for that time")
    for note in report.notes:
        yield labelled("Note: ", Style.FAINT, note)
    for assumption in report.provenance.assumptions if details else ():
        yield labelled("Assumed: ", Style.FAINT, assumption)
    if not details:
        words = ("--details ", Style.FAINT), "shows each broker and every assumption."
        yield line(*words, hang=10, pages=())
    yield line()


def _as_recorded(provenance: Provenance, simulation: Simulation) -> Provenance:
    """With the brokers that were recorded, in place of those that have the traffic then."""
    start, end = provenance.start, provenance.end
    recorded = (Coverage(broker=broker, requests=0, start=start, end=end) for broker in simulation.recorded.brokers)
    return replace(provenance, coverage=tuple(recorded))


def _moment_words(row: BucketVerdict, simulation: Simulation) -> str:
    """When a group has this verdict, where it has another one before or after the next apply."""
    moments = (("until the next apply", simulation.standings.at_once), ("after the next apply", simulation.standings.after_apply))
    verdicts = {
        words: standing.verdict
        for words, standings in moments
        for standing in standings
        if (standing.key, standing.bucket) == (row.key, row.name)
    }
    same = [words for words, verdict in verdicts.items() if verdict is row.verdict]
    return f" ({same[0]})" if len(verdicts) == len(moments) and len(same) == 1 else ""


def _over(report: BacktestReport, simulation: Simulation, *, details: bool) -> Iterator[Block]:
    over = [row for row in report.verdicts if row.verdict in (Verdict.THROTTLED, Verdict.POSSIBLE)]
    groups = group_verdicts(over)
    if not groups:
        return
    today = {(standing.key, standing.bucket): standing.verdict for standing in simulation.standings.today}
    yield from heading_lines("Over their limits then", count_of(len(groups), "quota group"))
    most = None if details else _SHOWN
    yield table(_GROUPS, (_group_row(group, today, simulation) for group in groups[:most]))
    yield from more_lines(len(groups), most, "quota groups")
    if details:
        for group in groups:
            yield line("  ", (group_title(group.worst), Style.STRONG))
            yield table(_BROKERS, (_broker_row(row) for row in group.rows), indent=4)


def _group_row(
    group: GroupRows, today: dict[tuple[str, BucketName], Verdict], simulation: Simulation
) -> tuple[tuple[str, Style] | str, ...]:
    row = group.worst
    standing = today.get((row.key, row.name))
    limit = after_text(row) + _moment_words(row, simulation)
    if row.changed:
        limit = f"{' or '.join(limit_text(row.key, before) for before in row.limits.before)} -> {limit}"
    return (
        (row.verdict.value, VERDICT_STYLES[row.verdict]),
        "not known" if standing is None else (standing.value, VERDICT_STYLES[standing]),
        group_title(row),
        limit,
        peak_text(group.highest),
        over_text(group),
        "every broker" if simulation.stands_for is not None else broker_words(row.broker),
    )


def _broker_row(row: BucketVerdict) -> tuple[tuple[str, Style] | str, ...]:
    return broker_words(row.broker), (row.verdict.value, VERDICT_STYLES[row.verdict]), peak_text(row), over_words(row)


def _limits(simulation: Simulation, *, details: bool) -> Iterator[Block]:
    if not simulation.limits:
        yield line()
        yield line("No limit changes. Kafka keeps the number that is stored for each broker.")
        return
    most = None if details else _SHOWN
    yield from heading_lines("Limits that change", f"on each broker, {count_of(len(simulation.limits), 'quota')}")
    rows = (
        (
            f"{limit.entity}: {limit.key}",
            limit_text(limit.key, limit.before, absent="not set"),
            limit_text(limit.key, limit.after, absent="not set"),
            limit.declared or "",
        )
        for limit in simulation.limits[:most]
    )
    yield table(_LIMITS, rows)
    yield from more_lines(len(simulation.limits), most, "quotas")


def _loads(simulation: Simulation, *, details: bool) -> Iterator[Block]:
    loads = [load for load in simulation.loads if load.before or load.after]
    if simulation.stands_for is not None:
        loads = [load for load in loads if load.before or load.broker == simulation.stands_for]
    if not loads:
        return
    most = None if details else _SHOWN
    yield from heading_lines("Traffic of all clients by broker", "averages over the history")
    rows = ((str(load.broker), load.key, _rate(load.key, load.before), _rate(load.key, load.after)) for load in loads[:most])
    yield table(_LOADS, rows)
    if simulation.stands_for is not None:
        yield line((f"  each of {len(simulation.brokers_after):,} brokers has the same traffic then", Style.FAINT))
    yield from more_lines(len(loads), most, "rows")


def _rate(key: str, value: float | None) -> str:
    return "not there" if value is None else rate(key, value)
