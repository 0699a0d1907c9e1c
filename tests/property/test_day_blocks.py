"""Blocks of per-second totals: whatever the shares, slots and blocks are, each second of a client is there once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.seconds import day_blocks
from reconciler.traffic.seconds.day_blocks import blocks_of_days, count_blocks, merge_blocks, read_summaries, slots_for
from reconciler.traffic.seconds.day_columns import NAMES, SECOND_COLUMNS
from reconciler.traffic.sources.normal_form import FILE, ROWS

_MIDNIGHT_US = 1_795_132_800_000_000
_SCHEMA = pa.schema([ROWS.field(name) if name != FILE.name else FILE for name in SECOND_COLUMNS])


class Request(NamedTuple):
    status: str
    broker: int | None
    kind: str
    user: str | None
    client_id: str | None
    ip: str | None
    ts_us: int | None
    records: int
    overhead: int
    throttled: bool
    file: str


NAMES_OF_CLIENTS = st.sampled_from([None, "", "alice", "böb"])
# Around a midnight, so that two days meet.
MOMENTS = st.integers(_MIDNIGHT_US - 3_000_000, _MIDNIGHT_US + 3_000_000)
REQUESTS = st.builds(
    Request,
    status=st.just("charged"),
    broker=st.integers(1, 2),
    kind=st.sampled_from(["produce", "fetch"]),
    user=NAMES_OF_CLIENTS,
    client_id=NAMES_OF_CLIENTS,
    ip=st.none(),
    ts_us=MOMENTS,
    records=st.integers(0, 10**9),
    overhead=st.integers(0, 100),
    throttled=st.booleans(),
    file=st.sampled_from(["a", "b"]),
)
OTHERS = st.builds(
    Request,
    status=st.sampled_from(["unreadable", "duplicate"]),
    broker=st.integers(1, 2),
    kind=st.just("produce"),
    user=st.none(),
    client_id=st.none(),
    ip=st.none(),
    ts_us=MOMENTS | st.none(),
    records=st.just(0),
    overhead=st.just(0),
    throttled=st.just(value=False),
    file=st.sampled_from(["a", "b"]),
)
SHARES = st.lists(st.lists(st.lists(REQUESTS | OTHERS, max_size=8), max_size=3), max_size=3)
SLOTS = st.sampled_from([1, 2, 8])


def batch_of(requests: Iterable[Request]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([request._asdict() for request in requests], schema=_SCHEMA)


def day_of(ts_us: int) -> str:
    return "2026-11-20" if ts_us >= _MIDNIGHT_US else "2026-11-19"


def expected_rows(requests: Iterable[Request], files: Iterable[str]) -> list[tuple[Any, ...]]:
    """One request after the other, in Python."""
    rows: dict[tuple[Any, ...], list[int]] = {}
    for request in requests:
        if request.ts_us is None or request.file not in files:
            continue
        charged = request.status == "charged"
        client = (request.kind, request.user, request.client_id) if charged else (None, None, None)
        key = (day_of(request.ts_us), request.ts_us // 1_000_000, request.broker, *client, request.status)
        amount = request.records + request.overhead if charged else 0
        largest = request.records if charged else 0
        within = request.ts_us % 1_000_000
        figures = [1, amount, largest, int(request.throttled and charged), within, within]
        known = rows.setdefault(key, [0, 0, largest, 0, within, within])
        for place in (0, 1, 3):
            known[place] += figures[place]
        known[2], known[4], known[5] = max(known[2], largest), min(known[4], within), max(known[5], within)
    return sorted((*map(repr, key), *figures) for key, figures in rows.items())


def merged_rows(blocks: Iterable[pa.RecordBatch], wanted: frozenset[tuple[str, str]] | None = None) -> list[pa.RecordBatch]:
    """Of each day, and of each slot alone."""
    parts: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    for block in blocks:
        (row,) = block.to_pylist()
        if row["slot"] >= 0:
            parts.setdefault((row["date"], row["slot"]), []).append(block)
    return [batch for part in parts.values() for batch in merge_blocks(part, wanted)]


def actual_rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    keys = ("second", "broker", "kind", "user", "client_id", "status")
    figures = ("requests", "amount", "largest", "throttled", "first_us", "last_us")
    rows = []
    for batch in batches:
        for row in batch.to_pylist():
            second = round(row["ts"].timestamp())
            key = (row["date"], *(second if name == "second" else row[name] for name in keys))
            rows.append((*map(repr, key), *(row[name] for name in figures)))
    return sorted(rows)


def blocks_of(shares: Iterable[Iterable[list[Request]]], slots: int, most_held: int = 1000) -> list[pa.RecordBatch]:
    return [block for share in shares for block in count_blocks(map(batch_of, share), slots, most_held)]


@given(SHARES, SLOTS, st.sampled_from([2, 1000]))
def test_each_second_of_a_client_is_there_once(shares: list[list[list[Request]]], slots: int, most_held: int) -> None:
    requests = [request for share in shares for batch in share for request in batch]
    batches = merged_rows(blocks_of(shares, slots, most_held))
    assert actual_rows(batches) == expected_rows(requests, "ab")


@given(SHARES, SLOTS)
def test_days_that_are_there_are_added_to(shares: list[list[list[Request]]], slots: int) -> None:
    requests = [request for share in shares for batch in share for request in batch]
    first, rest = shares[:1], shares[1:]
    # What an earlier run wrote, with another number of slots.
    written = [batch.select(list(NAMES)) for batch in merged_rows(blocks_of(first, 4))]
    blocks = [*blocks_of(rest, slots), *blocks_of_days(written, slots)]
    assert actual_rows(merged_rows(blocks)) == expected_rows(requests, "ab")


@given(SHARES, SLOTS)
def test_files_that_do_not_count_on_a_day_are_left_out(shares: list[list[list[Request]]], slots: int) -> None:
    requests = [request for share in shares for batch in share for request in batch]
    wanted = frozenset({("a", "2026-11-19"), ("a", "2026-11-20")})
    assert actual_rows(merged_rows(blocks_of(shares, slots), wanted)) == expected_rows(requests, "a")


@given(SHARES)
def test_summaries_count_every_row(shares: list[list[list[Request]]]) -> None:
    requests = [request for share in shares for batch in share for request in batch]
    packed = [bytes(row["rows"]) for block in blocks_of(shares, 2) for row in block.to_pylist() if row["slot"] < 0]
    summaries = read_summaries(packed)
    counted = {(row["file"], row["date"], row["status"]): row["requests"] for row in summaries}
    wanted: dict[tuple[str, str | None, str], int] = {}
    for request in requests:
        key = request.file, None if request.ts_us is None else day_of(request.ts_us), request.status
        wanted[key] = wanted.get(key, 0) + 1
    assert counted == wanted
    last = max((request.ts_us for request in requests if request.ts_us is not None), default=None)
    assert max((row["last"] for row in summaries if row["last"] is not None), default=None) == last


@given(st.lists(REQUESTS, min_size=1, max_size=30))
def test_rows_are_in_the_order_of_clients_and_time(requests: list[Request]) -> None:
    for date in ("2026-11-19", "2026-11-20"):
        of_day = [request for request in requests if request.ts_us is not None and day_of(request.ts_us) == date]
        for batch in merged_rows(count_blocks([batch_of(of_day)], 1)):
            rows = batch.to_pylist()
            order = [
                (row["kind"], row["broker"], *((row[n] is None, row[n] or "") for n in ("user", "client_id")), row["ts"])
                for row in rows
            ]
            assert order == sorted(order)


def test_slots_are_powers_of_two_that_have_room() -> None:
    known = [slots_for(totals) for totals in (0, 1, 1_000_000, 1_000_001, 5_000_000, 10**12)]
    assert known == [1, 1, 1, 2, 8, day_blocks.MOST_SLOTS]
