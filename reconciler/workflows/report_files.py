"""What a report takes from files: the last runs of audit files, and the results of backtests."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.documents import bucket_tags, headline, read_audit_line, read_backtest
from reconciler.errors import FileAccessError
from reconciler.model import BucketTraffic, BucketVerdict, RunRecord, TrafficOverview, escaped
from reconciler.workflows.trusted_files import TrustedFiles

MOST_RUNS: Final = 200
"""Runs that a report shows; of each audit file so many of the last lines are kept while it is read."""
_LONGEST_LINE: Final = 1 << 20
_MOST_NOTES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """What the files have; ``notes`` tell of lines that are no record of a run."""

    runs: tuple[RunRecord, ...] = ()
    runs_left_out: int = 0
    audited: bool = False
    traffic: tuple[TrafficOverview, ...] = ()
    notes: tuple[str, ...] = ()


def read_report_inputs(audits: Sequence[str], backtests: Sequence[str], *, trusted: TrustedFiles | None = None) -> ReportInputs:
    """Read all files. Raises ``FileAccessError`` for one that cannot be read, and for a backtest that is none.

    With ``trusted`` it raises ``UntrustedError`` for one that git tracks and that differs from the reference.
    """
    if trusted is not None:
        for file in (*audits, *backtests):
            trusted.require_same(file)
    runs: list[RunRecord] = []
    notes: list[str] = []
    left_out = 0
    for name in audits:
        found, more, wrong = _audit(name)
        runs += found
        left_out += more
        notes += wrong
    runs.sort(key=lambda run: (run.ended, run.started), reverse=True)
    return ReportInputs(
        runs=tuple(runs[:MOST_RUNS]),
        runs_left_out=left_out + max(0, len(runs) - MOST_RUNS),
        audited=bool(audits),
        traffic=tuple(read_traffic(name) for name in backtests),
        notes=tuple(notes),
    )


def _audit(name: str) -> tuple[list[RunRecord], int, list[str]]:
    """The last runs of a file, how many came before them, and what is wrong with its lines."""
    kept: deque[RunRecord] = deque(maxlen=MOST_RUNS)
    total = 0
    wrong: list[str] = []
    bad = 0
    try:
        with Path(name).open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if not line.strip():
                    continue
                try:
                    kept.append(read_audit_line(line, file=name))
                    total += 1
                except (ValueError, RecursionError) as error:
                    bad += 1
                    if bad <= _MOST_NOTES:
                        wrong.append(f"{escaped(name)}:{number} is not a line that --audit writes, and is left out: {error}")
    except OSError as error:
        msg = f"cannot read the audit file {name}: {error.strerror}"
        raise FileAccessError(msg) from error
    if bad > _MOST_NOTES:
        wrong.append(f"{escaped(name)}: {bad - _MOST_NOTES} more lines like these are left out")
    return list(kept), total - len(kept), wrong


def read_traffic(name: str) -> TrafficOverview:
    """What a report shows of the file of a backtest. Raises ``FileAccessError``."""
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        msg = f"cannot read the backtest {name}: {error.strerror}"
        raise FileAccessError(msg) from error
    report = read_backtest(content, name=name)
    return TrafficOverview(
        file=name,
        form=report.provenance.form,
        semantics=report.provenance.semantics,
        start=report.provenance.start,
        end=report.provenance.end,
        requests=report.provenance.requests,
        current_known=report.provenance.current_known,
        cluster=report.cluster,
        headline=headline(report)[0],
        buckets=tuple(_bucket(verdict) for verdict in report.verdicts),
        unjudged=report.unjudged,
    )


def _bucket(verdict: BucketVerdict) -> BucketTraffic:
    return BucketTraffic(
        bucket=bucket_tags(verdict.name),
        key=verdict.key,
        broker=verdict.broker,
        entity=verdict.entity,
        limit_before=verdict.limit_before,
        limit_after=verdict.limit_after,
        changed=verdict.changed,
        verdict=verdict.verdict,
        requests=verdict.requests,
        active_seconds=verdict.active_seconds,
        seconds_over=verdict.seconds_over,
        peak=verdict.peak,
        peak_bound=verdict.peak_bound,
        safe=verdict.safe,
        recommended=verdict.recommended,
        reason=verdict.reason,
    )
