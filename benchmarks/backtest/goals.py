"""What the ratios within one run may be: what has to hold for large runs, and what a small run must not exceed in CI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """An engine's median of several rounds: wall clock and processor time in seconds, peak memory in MB; and its answer."""

    seconds: float
    cpu: float
    peak: float
    answer: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """``engine`` may take so many times the time of the quickest of ``beside``. ``cpu``: processor time, which a busy machine
    hardly changes, in place of wall clock."""

    engine: str
    beside: tuple[str, ...]
    limit: float
    cpu: bool = False


GATES = (
    Gate(engine="seconds", beside=("spark scan",), limit=6.0),
    Gate(engine="seconds", beside=("spark scan",), limit=3.5, cpu=True),
    Gate(engine="exact", beside=("spark scan",), limit=6.5),
    Gate(engine="exact", beside=("spark scan",), limit=5.0, cpu=True),
    Gate(engine="cells", beside=("spark scan",), limit=3.5),
    Gate(engine="one user", beside=("spark scan",), limit=1.5),
)
"""Of ten million rows: what does not grow with them (compiling, sixty thousand verdicts) weighs heavily there, so these say
nothing about large runs."""
MOST_MB = 6_500.0
"""Peak memory of any of ours."""


def broken(results: Mapping[str, Result], gates: tuple[Gate, ...] = GATES) -> Iterator[str]:
    """A sentence for each gate that is not kept; gates without their engines are left out."""
    for gate in gates:
        beside = [results[name] for name in gate.beside if name in results]
        if gate.engine not in results or not beside:
            continue
        mine, bound = _time(results[gate.engine], gate), min(_time(one, gate) for one in beside)
        if mine > gate.limit * bound:
            what = "processor time" if gate.cpu else "wall clock"
            yield f"{gate.engine}: {mine / bound:.2f} x the {what} of {' or '.join(gate.beside)}, and {gate.limit} x is the most"
    for name, result in results.items():
        if name not in ("spark scan", "duckdb", "polars") and result.peak > MOST_MB:
            yield f"{name}: {result.peak:.0f} MB, and {MOST_MB:.0f} MB is the most"


def _time(result: Result, gate: Gate) -> float:
    return result.cpu if gate.cpu else result.seconds
