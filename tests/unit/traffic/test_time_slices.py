"""Parts of Parquet files in slices of time: what is judged moment by moment needs all rows of a moment at once."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.sources.parquet_parts import Part, parts_of, time_slices

SPANS = st.tuples(st.integers(0, 5_000), st.integers(0, 3_000)).map(lambda span: (span[0], span[0] + span[1]))


def part(number: int, span: tuple[int, int] | None, rows: int = 10) -> Part:
    return Part(str(number), 0, 1, rows, frozenset(), None, span)


@given(st.lists(SPANS, max_size=12), st.integers(0, 60))
def test_no_two_slices_share_a_millisecond_and_no_part_is_lost(spans: list[tuple[int, int]], rows: int) -> None:
    slices = time_slices([part(number, span) for number, span in enumerate(spans)], rows)
    assert sorted(int(one.path) for some in slices for one in some) == list(range(len(spans)))
    times = [[at // 1000 for one in some for at in one.span_us or ()] for some in slices]
    assert all(max(earlier) < min(later) for earlier, later in itertools.pairwise(times))
    # A slice above the size has nothing but parts that overlap each other.
    for some in slices:
        if len(some) * 10 > max(10, rows):
            ordered = [one.span_us or (0, 0) for one in some]
            assert any(b[0] // 1000 <= max(end // 1000 for _, end in ordered[:at]) for at, b in enumerate(ordered) if at)


def test_parts_without_known_times_are_one_slice() -> None:
    parts = [part(1, (0, 10)), part(2, None), part(3, (5_000, 9_000))]
    assert time_slices(parts, 1) == [tuple(parts)]


def test_the_times_of_a_part_are_those_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    times = [datetime.datetime(2026, 11, 23, 12, 0, second, tzinfo=datetime.UTC) for second in (7, 3, 5, 9)]
    pq.write_table(pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))}), path, row_group_size=2)
    first = int(times[1].timestamp() * 1e6)
    assert [one.span_us for one in parts_of([str(path)])] == [(first, first + 6_000_000)]
    assert [one.span_us for one in parts_of([str(path)], rows=1)] == [
        (first, first + 4_000_000),
        (first + 2_000_000, first + 6_000_000),
    ]
