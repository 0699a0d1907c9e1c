"""Results as rows: for people on a terminal, as Markdown for ``benchmarks/fidelity/README.md``, and as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.fidelity.comparison import Pair, Summary, by_bucket, by_group, summary
from benchmarks.fidelity.musts import musts
from benchmarks.fidelity.open_loop import NEAR_MS, OpenLoopRun
from benchmarks.fidelity.request_time import MissingTime, missing_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A title, the names of its columns, and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_FIGURES = ("requests", "throttled (predicted)", "same verdict", "sum of throttles", "error, median / 95 %")


def tables(runs: Sequence[OpenLoopRun]) -> Iterator[Table]:
    """Everything, the demands first."""
    for run in runs:
        title = f"{run.scenario}, Kafka {run.kafka_version}, {run.brokers} broker{'s' if run.brokers > 1 else ''}"
        about = f"{title}: {run.requests} requests in {run.seconds:g} s, twice"
        yield Table(
            title=about,
            columns=("demand", "found", "needed", ""),
            rows=tuple((one.what, one.found, one.needed, "kept" if one.kept else "MISSED") for one in musts(run)),
        )
        yield Table(title=f"{title}: by kind of traffic", columns=("predicted from", "kind", *_FIGURES), rows=tuple(_kinds(run)))
        yield Table(
            title=f"{title}: by bucket, predicted from the traffic without quotas",
            columns=("kind", "bucket", *_FIGURES),
            rows=tuple(_buckets(run)),
        )
        if missing := missing_time(run.own):
            yield Table(
                title=f"{title}: the time that the log does not have",
                columns=("bucket", "requests", "throttled", "same verdict by the logged time", "and by this much of it"),
                rows=tuple(map(_missing, missing)),
            )
        yield Table(title=f"{title}: the machine", columns=("what", "found"), rows=tuple(_noise(run)))


def _buckets(run: OpenLoopRun) -> Iterator[tuple[str, ...]]:
    calm: dict[str, list[Pair]] = defaultdict(list)
    for (group, bucket), one in by_bucket(run.ahead).items():
        if one.throttled or one.throttled_predicted:
            yield (group, str(bucket), *_figures(one))
        else:
            calm[group] += [pair for pair in run.ahead if (pair.group, pair.bucket) == (group, bucket)]
    for group, some in calm.items():
        count = len({one.bucket for one in some})
        yield (group, f"{count} more, never throttled", *_figures(summary(some)))


def _kinds(run: OpenLoopRun) -> Iterator[tuple[str, ...]]:
    for source, some in (("traffic without quotas", run.ahead), ("its own log", run.own)):
        for group, one in by_group(some).items():
            yield (source, group, *_figures(one))
        yield (source, "all", *_figures(summary(some)))


def _figures(one: Summary) -> tuple[str, ...]:
    return (
        str(one.requests),
        f"{one.throttled} ({one.throttled_predicted})",
        f"{one.agreement:.2%}",
        f"{one.sum_ms / 1000:.1f} s, {one.sum_error:+.2%}",
        f"{one.error_median_ms:.0f} / {one.error_p95_ms:.0f} ms",
    )


def _missing(one: MissingTime) -> tuple[str, ...]:
    with_factor = f"{one.agreement_with_factor:.2%} by {one.factor:.1f} x"
    return (str(one.bucket), str(one.requests), str(one.throttled), f"{one.agreement:.2%}", with_factor)


def _noise(run: OpenLoopRun) -> Iterator[tuple[str, str]]:
    noise = run.noise
    yield "sent later than planned, 95 % / most", f"{noise.late_p95:.1f} / {noise.late_most:.0f} ms"
    yield "charged at another time in the second run, 95 %", f"{noise.shift_p95:.1f} ms"
    yield f"moved by at most {NEAR_MS:g} ms between the runs", f"{noise.shift_near:.1%} of requests"
    yield "connections opened in the middle of a run", str(noise.opened_late)


def as_text(table: Table) -> str:
    """Columns below each other."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([table.title, *(f"  {line}" for line in lines), ""])


def as_markdown(table: Table) -> str:
    """A heading and a table."""
    head = _row(table.columns) + "\n" + _row(["---"] * len(table.columns))
    return "\n".join([f"### {table.title}", "", head, *map(_row, table.rows), ""])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def as_json(runs: Sequence[OpenLoopRun], machine: str, date: str) -> dict[str, Any]:
    """The same figures, not rounded."""
    return {
        "format_version": "1.0",
        "date": date,
        "machine": machine,
        "open_loop": [_run(run) for run in runs],
        "kept": all(must.kept for run in runs for must in musts(run)),
    }


def _run(run: OpenLoopRun) -> dict[str, Any]:
    sources = {"ahead": run.ahead, "own_log": run.own}
    buckets = by_bucket(run.ahead).items()
    return {
        "scenario": run.scenario,
        "kafka_version": run.kafka_version,
        "brokers": run.brokers,
        "seconds": run.seconds,
        "requests": run.requests,
        "noise": asdict(run.noise),
        "musts": [asdict(one) for one in musts(run)],
        "by_kind": {name: {group: _summary(one) for group, one in by_group(some).items()} for name, some in sources.items()},
        "by_bucket": [{"kind": group, **asdict(bucket), **_summary(one)} for (group, bucket), one in buckets],
        "request_time": [asdict(one) for one in missing_time(run.own)],
        "seconds_ahead": asdict(run.seconds_ahead),
        "seconds_own": asdict(run.seconds_own),
        "verdicts": dict(run.verdicts_given),
        "verdicts_wrong": list(run.verdicts_wrong),
    }


def _summary(one: Summary) -> dict[str, Any]:
    derived = {name: getattr(one, name) for name in ("agreement", "sum_error")}
    return {**asdict(one), **derived}
