"""Recorded traffic as it would be with other brokers, or more of it: amounts divided among brokers and multiplied.

Rows are changed before they are judged, so everything behind them is the backtest's own. A second of a client on one broker
becomes seconds on several. Its amount is divided in whole numbers that add up to it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import UsageError
from reconciler.model import Coverage
from reconciler.traffic import GAUGE_TOTALS, Facts, Integers, Kind, Series, TrafficSource, gauges_of, integers


class MovedTraffic(TrafficSource):
    """Rows of ``recorded`` as they would be after ``moves``. They are judged by seconds.

    Closing it does not close ``recorded``.
    """

    def __init__(self, recorded: TrafficSource, moves: TrafficMoves) -> None:
        """Raises ``UsageError`` for gauges that would move."""
        # Not the other constructor: it would read all rows for what is known here.
        if recorded.gauges and moves.lost:
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


COLUMNS: Final = ("broker", "kind", "ts_us", "records", "overhead")
"""What ``move_rows`` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficMoves:
    """Where traffic goes: that of each broker in ``lost`` in equal parts to those in ``left``.

    Mutations stay, since the active controller counts them. ``factor``: multiplies all amounts.
    """

    lost: frozenset[int] = frozenset()
    left: tuple[int, ...] = ()
    factor: float = 1.0

    def targets_of(self, broker: int, kind: str) -> tuple[int, ...]:
        """Return the brokers to which the traffic of a broker goes."""
        return self.left if broker in self.lost and kind != Kind.MUTATION.value else (broker,)


def divide(amounts: Integers, count: int, factor: float, ts_us: Integers) -> list[Integers]:
    """Whole amounts (0 to 2^42) times ``factor``, rounded, as ``count`` (up to 2^20) nearly equal parts that add up to it.

    ``ts_us``: the moment of each amount. By its second, units that cannot be divided go now to the one part, now to the other.
    """
    whole = amounts if factor == 1.0 else np.rint(amounts * factor).astype(np.int64)
    turn = ts_us // 1_000_000 % count
    edges = [(whole * number + turn) // count for number in range(count + 1)]
    return [after - before for before, after in itertools.pairwise(edges)]


def move_series(series: Iterable[Series], moves: TrafficMoves) -> tuple[Series, ...]:
    """The clients on the brokers that get their traffic, sorted, with keys from 0 on. Figures are divided like the amounts."""
    parts: dict[tuple[int, Kind, str | None, str | None, str | None], list[tuple[Series, float]]] = defaultdict(list)
    for client in series:
        targets = moves.targets_of(client.broker, client.kind.value)
        for broker in targets:
            parts[broker, client.kind, client.user, client.client_id, client.ip].append((client, 1 / len(targets)))
    made = []
    for (broker, kind, user, client_id, ip), some in parts.items():
        requests = math.fsum(client.requests * share for client, share in some)
        client = Series(
            broker=broker,
            kind=kind,
            user=user,
            client_id=client_id,
            ip=ip,
            requests=max(1, round(requests)) if requests else 0,
            amount=round(math.fsum(client.amount * share for client, share in some) * moves.factor),
            largest=max(client.largest for client, _ in some),
            throttled=round(math.fsum(client.throttled * share for client, share in some)),
            unplaced=math.ceil(math.fsum(client.unplaced * share for client, share in some)),
            uncounted=math.ceil(math.fsum(client.uncounted * share for client, share in some)),
        )
        made.append(client)
    return tuple(replace(client, key=key) for key, client in enumerate(sorted(made, key=lambda client: client.sort_key)))


def move_facts(facts: Facts, moves: TrafficMoves) -> Facts:
    """The facts with the brokers that get the traffic. What a broker lacks, those lack that would have got it."""
    parts: dict[int, list[tuple[Coverage, float]]] = defaultdict(list)
    for part in facts.coverage:
        targets = moves.targets_of(part.broker, "")
        for broker in targets:
            parts[broker].append((part, 1 / len(targets)))
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
    gaps = [msgspec.structs.replace(gap, broker=broker) for gap in facts.gaps for broker in moves.targets_of(gap.broker, "")]
    named = tuple(broker for broker in facts.named_brokers if broker not in moves.lost)
    return replace(facts, coverage=coverage, gaps=tuple(dict.fromkeys(gaps)), named_brokers=named)


def move_minutes(minutes: Mapping[int, Integers], moves: TrafficMoves) -> dict[int, Integers]:
    """Return the minutes of each broker in which every broker was recorded from which it gets traffic."""
    common: dict[int, Integers] = {}
    for source, recorded in minutes.items():
        for broker in moves.targets_of(source, ""):
            common[broker] = np.intersect1d(common[broker], recorded) if broker in common else recorded
    return common


def move_rows(batches: Iterable[pa.RecordBatch], moves: TrafficMoves) -> Iterator[pa.RecordBatch]:
    """Rows of the canonical traffic schema on the brokers that get them. ``batches``: with the columns ``COLUMNS``."""
    return (_moved(batch, moves) for batch in batches)


def _moved(batch: pa.RecordBatch, moves: TrafficMoves) -> pa.RecordBatch:
    """The rows that stay, then those that move, once for each broker that gets them."""
    broker, ts_us = integers(batch.column("broker")), integers(batch.column("ts_us"))
    is_mutation = pc.fill_null(pc.equal(batch.column("kind").cast(pa.string()), Kind.MUTATION.value), pa.scalar(value=False))
    moved = np.isin(broker, list(moves.lost)) & ~np.asarray(is_mutation)
    stays, goes = np.flatnonzero(~moved), np.flatnonzero(moved)
    targets = moves.left if len(goes) else ()
    columns = {"broker": np.concatenate([broker[stays], np.repeat(np.asarray(targets, dtype=np.int64), len(goes))])}
    for name in ("records", "overhead"):
        values = integers(batch.column(name))
        (kept,) = divide(values[stays], 1, moves.factor, ts_us[stays])
        columns[name] = np.concatenate([kept, *divide(values[goes], len(targets), moves.factor, ts_us[goes])])
    made = batch.take(pa.array(np.concatenate([stays, *(goes for _ in targets)])))
    for name, values in columns.items():
        place = batch.schema.names.index(name)
        known = made.column(name)
        mask = ~np.asarray(known.is_valid()) if known.null_count else None
        made = made.set_column(place, batch.schema.field(place), pa.array(values, mask=mask).cast(known.type))
    return made


def rows_mover(moves: TrafficMoves) -> functools.partial[Iterator[pa.RecordBatch]]:
    """``move_rows`` of these moves, as workers of Spark get it."""
    return functools.partial(move_rows, moves=moves)
