"""Recorded traffic as it would be with other brokers, or more of it: amounts divided among brokers and multiplied.

Rows are changed before they are judged, so everything behind them is the backtest's own. A second of a client on one broker
becomes seconds on several. Its amount is divided in whole numbers that add up to it.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import UsageError
from reconciler.model import Coverage
from reconciler.traffic import GAUGE_TOTALS, Facts, Integers, Kind, SecondsTraffic, Series, gauges_of, integers


class MovedTraffic(SecondsTraffic):
    """Rows of ``recorded`` as they would be after ``moves``. They are judged by seconds.

    Closing it does not close ``recorded``.
    """

    def __init__(self, recorded: SecondsTraffic, moves: TrafficMoves) -> None:
        """Raises ``UsageError`` for gauges that would move."""
        # Not the other constructor: it would read all rows for what is known here.
        if recorded.gauges and moves.moves:
            raise UsageError(
                "This traffic has rates of single brokers at their own moments. Moves need requests or per-second totals"
            )
        self._recorded, self._moves = recorded, moves
        self.rows = recorded.rows.map(rows_mover(moves), COLUMNS)
        self.columns: frozenset[str] = frozenset()
        self.is_stored = recorded.is_stored
        self.series = move_series(recorded.series, moves)
        self.facts = move_facts(recorded.facts, moves)
        self.gauges = gauges_of(self.rows.total(GAUGE_TOTALS)) if recorded.gauges else ()

    def minutes(self) -> Mapping[int, Integers]:
        """Implement ``TrafficSource.minutes``."""
        return move_minutes(self._recorded.minutes(), self._moves)

    def close(self) -> None:
        """The rows belong to the source of all of them."""


Shares: TypeAlias = tuple[tuple[int, float], ...]
"""Brokers, and the share of a broker's traffic that each of them gets."""

COLUMNS: Final = ("broker", "kind", "ts_us", "records", "overhead")
"""What ``move_rows`` reads."""
_PHASES: Final = 997
_GOLDEN: Final = 0.6180339887498949
_PHASE: Final = np.floor(np.modf(np.arange(_PHASES) * _GOLDEN)[0] * _PHASES) / (_PHASES + 1)
"""By moment, modulo its length: what is added before rounding down, from 0 to below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficMoves:
    """Where traffic goes. ``shares``: by recorded broker, of all whose traffic does not stay where it is; 1 in all, or less.

    Mutations stay, since the active controller counts them. ``factor``: multiplies all amounts.
    """

    shares: Mapping[int, Shares] = field(default_factory=dict)
    factor: float = 1.0

    @property
    def moves(self) -> bool:
        """Whether any traffic changes its broker."""
        return bool(self.shares)

    def shares_of(self, broker: int, kind: str) -> Shares:
        """Return the brokers to which the traffic of a broker goes, with their shares."""
        return ((broker, 1.0),) if kind == Kind.MUTATION.value else self.shares.get(broker, ((broker, 1.0),))


def divide(amounts: Integers, shares: Sequence[float], factor: float, moments: Integers) -> Iterator[Integers]:
    """Whole amounts (0 to 2^42), one array for each share; shares of 1 in all add up to the amount times ``factor``, rounded.

    ``moments``: a number of each amount, by which single units that cannot be divided go now to the one share, now to the other.
    """
    whole = multiply(amounts, factor)
    if len(shares) == 1 and shares[0] == 1.0:
        yield whole
        return
    phase, below = _PHASE[moments % _PHASES], None
    for number, _ in enumerate(shares):
        reached = math.fsum(shares[: number + 1])
        # The sum of three thirds is not always 1.
        upto = whole if math.isclose(reached, 1.0, rel_tol=1e-9) else (whole * reached + phase).astype(np.int64)
        yield upto if below is None else upto - below
        below = upto


def multiply(amounts: Integers, factor: float) -> Integers:
    """Whole amounts (0 to 2^42) times ``factor``, rounded."""
    return amounts if factor == 1.0 else np.rint(amounts * factor).astype(np.int64)


def move_series(series: Iterable[Series], moves: TrafficMoves) -> tuple[Series, ...]:
    """The clients on the brokers that get their traffic, sorted, with keys from 0 on. Figures are divided like the amounts."""
    figures: dict[tuple[int, Kind, str | None, str | None, str | None], list[float]] = defaultdict(
        lambda: [0.0, 0.0, 0, 0.0, 0.0, 0.0]
    )
    for client in series:
        for broker, share in moves.shares_of(client.broker, client.kind.value):
            sums = figures[broker, client.kind, client.user, client.client_id, client.ip]
            sums[0] += client.requests * share
            sums[1] += client.amount * share * moves.factor
            sums[2] = max(sums[2], client.largest)
            sums[3] += client.throttled * share
            sums[4] += client.unplaced * share
            sums[5] += client.uncounted * share
    made = (
        Series(
            broker=broker, kind=kind, user=user, client_id=client_id, ip=ip,
            requests=max(1, round(requests)) if requests else 0, amount=round(amount), largest=int(largest),
            throttled=round(throttled),
            unplaced=math.ceil(unplaced), uncounted=math.ceil(uncounted),
        )
        for (broker, kind, user, client_id, ip), (requests, amount, largest, throttled, unplaced, uncounted) in figures.items()
    )  # fmt: skip
    return tuple(replace(client, key=key) for key, client in enumerate(sorted(made, key=lambda client: client.sort_key)))


def move_facts(facts: Facts, moves: TrafficMoves) -> Facts:
    """The facts with the brokers that get the traffic. What a broker lacks, those lack that would have got it."""
    parts: dict[int, list[tuple[Coverage, float]]] = defaultdict(list)
    for part in facts.coverage:
        for broker, share in moves.shares_of(part.broker, ""):
            parts[broker].append((part, share))
    coverage = tuple(
        Coverage(
            broker=broker,
            requests=round(sum(part.requests * share for part, share in some)),
            start=min(part.start for part, _ in some),
            end=max(part.end for part, _ in some),
            is_moved=[part.broker for part, _ in some] != [broker],
        )
        for broker, some in sorted(parts.items())
    )
    gone = moves.shares.keys() - parts.keys()
    gaps = [replace(gap, broker=broker) for gap in facts.gaps for broker, _ in moves.shares_of(gap.broker, "")]
    named = tuple(broker for broker in facts.named_brokers if broker not in gone)
    return replace(facts, coverage=coverage, gaps=tuple(dict.fromkeys(gaps)), named_brokers=named)


def move_minutes(minutes: Mapping[int, Integers], moves: TrafficMoves) -> dict[int, Integers]:
    """Return the minutes of each broker in which every broker was recorded from which it gets traffic."""
    common: dict[int, Integers] = {}
    for source, recorded in minutes.items():
        for broker, _ in moves.shares_of(source, ""):
            common[broker] = np.intersect1d(common[broker], recorded) if broker in common else recorded
    return common


def move_rows(batches: Iterable[pa.RecordBatch], moves: TrafficMoves) -> Iterator[pa.RecordBatch]:
    """Rows of the canonical traffic schema on the brokers that get them. ``batches``: with the columns ``COLUMNS``."""
    return (_moved(batch, moves) for batch in batches)


def _moved(batch: pa.RecordBatch, moves: TrafficMoves) -> pa.RecordBatch:
    broker, ts_us = integers(batch.column("broker")), integers(batch.column("ts_us"))
    amounts = {name: integers(batch.column(name)) for name in ("records", "overhead")}
    stays = np.asarray(
        pc.fill_null(pc.equal(batch.column("kind").cast(pa.string()), Kind.MUTATION.value), pa.scalar(value=False))
    )
    parts: list[tuple[Integers, Integers, dict[str, Integers]]] = []
    moved = np.isin(broker, list(moves.shares)) & ~stays
    choices: list[tuple[Integers, Shares | None]] = [(np.flatnonzero(~moved), None)]
    choices += [(np.flatnonzero(moved & (broker == source)), shares) for source, shares in moves.shares.items()]
    for rows, shares in choices:
        if not len(rows):
            continue
        some = [1.0] if shares is None else [share for _, share in shares]
        divided = {name: list(divide(values[rows], some, moves.factor, ts_us[rows])) for name, values in amounts.items()}
        for number in range(len(some)):
            target = broker[rows] if shares is None else np.full(len(rows), shares[number][0], dtype=np.int64)
            parts.append((rows, target, {name: columns[number] for name, columns in divided.items()}))
    if not parts:
        return batch
    rows = np.concatenate([part[0] for part in parts])
    made = batch.take(pa.array(rows))
    columns = {"broker": np.concatenate([part[1] for part in parts])}
    columns |= {name: np.concatenate([part[2][name] for part in parts]) for name in amounts}
    for name, values in columns.items():
        place = batch.schema.names.index(name)
        known = made.column(name)
        mask = ~np.asarray(known.is_valid()) if known.null_count else None
        made = made.set_column(place, batch.schema.field(place), pa.array(values, mask=mask).cast(known.type))
    return made


def rows_mover(moves: TrafficMoves) -> functools.partial[Iterator[pa.RecordBatch]]:
    """``move_rows`` of these moves, as workers of Spark get it."""
    return functools.partial(move_rows, moves=moves)
