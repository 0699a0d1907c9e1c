"""Recorded traffic that is as unpleasant as it comes, drawn by hypothesis, as arrivals and as shuffled Parquet files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.support.arrivals import PATTERNS, arrivals
from tests.support.quota_oracles import Arrival

USERS = ("hot", "alice", "bob", "ürsula", "<default>")
CLIENTS = ("app", "", "a\tb")
_HOUR_US = 3_600_000_000
_HOT = 10
"""So many times as many requests as anybody else: about nine of ten."""
_SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")), ("interval_ms", pa.int32()), ("broker", pa.int32()), ("user", pa.string()),
        ("client_id", pa.string()), ("kind", pa.string()), ("amount", pa.int64()), ("semantics", pa.string()),
        ("tie", pa.int64()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What one client sends to one broker: dense or sparse, nothing or far too much, with hours of silence, and told twice."""

    broker: int
    user: str
    client_id: str
    kind: str
    pattern: str
    seed: int
    count: int
    scale: int
    pause_us: int
    """Of silence, after as many requests as ``silent_after``."""
    silent_after: int
    twice_every: int
    """Which requests are there a second time, as of a file that was copied."""

    def arrivals(self, number: int) -> list[Arrival]:
        """``number``: of two flows that are one client's, no two requests may stand in the same place."""
        times, overhead, records = arrivals(self.pattern, self.seed, self.count)
        found = [
            Arrival(
                ts_us=at * 1000 + n % 7 + (self.pause_us if n >= self.silent_after else 0), broker=self.broker, user=self.user,
                client_id=self.client_id, kind=self.kind, amount=amount * self.scale, tie=n * 16 + number,
            )
            for n, (at, amount) in enumerate(zip(times.tolist(), (overhead + records).tolist(), strict=True))
        ]  # fmt: skip
        return found + found[:: self.twice_every]


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """The user ``hot`` sends about nine of ten requests."""
    user = draw(st.sampled_from(USERS))
    count = draw(st.integers(1, 40)) * (_HOT if user == "hot" else 1)
    return Flow(
        broker=draw(st.sampled_from([1, 2, 70_000])),
        user=user,
        client_id=draw(st.sampled_from(CLIENTS)),
        kind=draw(st.sampled_from(["produce", "fetch"])),
        pattern=draw(st.sampled_from(PATTERNS)),
        seed=draw(st.integers(0, 10**6)),
        count=count,
        scale=draw(st.sampled_from([1, 0, 1, 2**24])),
        pause_us=draw(st.sampled_from([0, 0, 5 * _HOUR_US])),
        silent_after=draw(st.integers(0, count)),
        twice_every=draw(st.sampled_from([3, 1000])),
    )


FLOWS = st.lists(flows(), min_size=4, max_size=12)


def arrivals_of(drawn: Sequence[Flow]) -> list[Arrival]:
    """Of all flows, one after the other."""
    return [one for number, flow in enumerate(drawn) for one in flow.arrivals(number)]


def write_files(folder: Path, drawn: Sequence[Arrival], *, files: int, seed: int) -> list[Path]:
    """In the normal form, in no order: within a file, and over files, time goes back and forth."""
    shuffled = list(drawn)
    random.Random(seed).shuffle(shuffled)
    folder.mkdir(parents=True)
    paths = []
    for number in range(files):
        rows = [
            {
                "ts": one.ts_us, "interval_ms": 0, "broker": one.broker, "user": one.user, "client_id": one.client_id,
                "kind": one.kind, "amount": one.amount, "semantics": "event", "tie": one.tie,
            }
            for one in shuffled[number::files]
        ]  # fmt: skip
        paths.append(folder / f"{number}.parquet")
        pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), paths[-1], row_group_size=200)
    return paths
