"""The recorder's files become rows: sums of seconds, silent minutes, dropped seconds; what is damaged is counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import TrafficError
from reconciler.features.recorder.traffic import recorder_files_in, recorder_rows
from reconciler.traffic import ROWS, Source, find_traffic
from tests.support.recorder_lines import Sums, header, write_members, write_sums

NAME = "quota-recorder-1-20261123T024142050Z.jsonl.gz"
START = 1_763_860_020
"""The beginning of a minute."""
ALICE = ["c", 0, "produce", "alice", "app"]


def rows_in(*files: Path) -> list[dict[str, Any]]:
    batches = list(recorder_rows([str(file) for file in files]))
    assert all(batch.schema == ROWS for batch in batches)
    return pa.Table.from_batches(batches, schema=ROWS).to_pylist()


def statuses(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["status"] for row in rows)


def test_a_sum_is_a_row_at_the_end_of_its_second(tmp_path: Path) -> None:
    lines = [header(7), ["c", 5, "fetch", None, 'r"e\n']]
    file = write_members(tmp_path / NAME, lines, [["s", START, [5, 300], [5, 40]], ["s", START + 1, [5, 7]]])
    first, second = rows_in(file)
    assert (first["broker"], first["kind"], first["user"], first["client_id"]) == (7, "fetch", None, 'r"e\n')
    assert (first["status"], first["records"], first["overhead"], first["throttled"]) == ("charged", 300, 0, True)
    assert (first["ts_us"] + 1, first["interval_us"]) == ((START + 1) * 1_000_000, None)
    assert (second["records"], second["throttled"]) == (7, False)


def test_amounts_of_one_second_add_up_whatever_lines_they_are_in(tmp_path: Path) -> None:
    lines = [["s", START, [0, 300]], ["s", START + 1, []], ["s", START, [0, -100], [0, 5]], ["s", START + 2, [0, -5]]]
    rows = rows_in(write_members(tmp_path / NAME, [header(), ALICE], lines))
    assert [(row["ts_us"] // 1_000_000 - START, row["records"], row["throttled"]) for row in rows] == [
        (0, 200, True),
        (2, 0, False),
    ]


def test_a_silent_minute_is_seen_and_charges_nothing(tmp_path: Path) -> None:
    lines = [["s", START + second, [0, 1] if second < 3 else []] for second in range(180)]
    rows = rows_in(write_members(tmp_path / NAME, [header(), ALICE], lines))
    assert statuses(rows) == {"charged": 3, "silent-minute": 2}
    assert sorted(row["ts_us"] // 60_000_000 for row in rows if row["status"] == "silent-minute") == [
        START // 60 + 1,
        START // 60 + 2,
    ]


def test_dropped_seconds_are_unreadable_with_their_reason(tmp_path: Path) -> None:
    lines = [["s", START, [0, 1]], ["d", START + 1, START + 10, "cannot write: IOException"]]
    rows = rows_in(write_members(tmp_path / NAME, [header(), ALICE], lines))
    assert statuses(rows) == {"charged": 1, "unreadable": 10}
    assert rows[-1]["detail"] == (
        f"the recorder dropped the seconds {START + 1} to {START + 10} (since 1970): cannot write: IOException"
    )


@pytest.mark.parametrize(
    "damaged",
    [
        "nonsense\n",
        "[]\n",
        ["x", 1],
        ["s", START, [9, 1]],
        ["s", START, [0]],
        ["s", START, [0, 1.5]],
        ["s", START, [0, True]],
        ["s", START, [-1, 1]],
        ["s", START, [0, 2**70]],
        ["s", 5, [0, 1]],
        ["s", 2**70, [0, 1]],
        ["c", -1, "produce", "a", "b"],
        ["c", 2**40, "produce", "a", "b"],
        ["c", 3, "nonsense", "a", "b"],
        ["c", 3, "produce", 4, "b"],
        ["d", START, START - 1, "why"],
        ["d", 0, 2**40, "why"],
        "[" * 5000 + "\n",
    ],
)
def test_a_damaged_line_is_counted_and_the_others_are_read(tmp_path: Path, damaged: Any) -> None:
    file = write_members(tmp_path / NAME, [header(), ALICE], [damaged, ["s", START, [0, 1]]])
    assert statuses(rows_in(file)) == {"charged": 1, "unreadable": 1}


def test_what_a_crash_cut_short_is_read_to_there(tmp_path: Path) -> None:
    members = [header(), ALICE], [["s", START, [0, 1]]], [["s", START + 1, [0, 2]]]
    whole = write_members(tmp_path / NAME, *members).read_bytes()
    counts = set()
    for end in range(len(whole) + 1):
        (tmp_path / NAME).write_bytes(whole[:end])
        counts.add(len(rows_in(tmp_path / NAME)))
    assert counts == {0, 1, 2}


def test_an_empty_file_and_garbage_behind_the_last_member_add_nothing(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"")
    assert rows_in(tmp_path / NAME) == []
    file = write_sums(tmp_path / NAME, {("produce", "alice", "app"): {START: 4}})
    file.write_bytes(file.read_bytes() + b"\0" * 100 + b"garbage")
    assert [row["records"] for row in rows_in(file)] == [4]


def test_another_version_another_file_and_another_cluster_are_refused(tmp_path: Path) -> None:
    file = write_members(tmp_path / NAME, [header(version=2)])
    with pytest.raises(TrafficError, match="has version 2, and this kafka-quotas reads 1: upgrade"):
        rows_in(file)
    file = write_members(tmp_path / NAME, ["a log\n"])
    with pytest.raises(TrafficError, match="not that of a recorder's file"):
        rows_in(file)
    file = write_members(tmp_path / NAME, [header(broker=-1)])
    with pytest.raises(TrafficError, match="names no broker"):
        rows_in(file)
    files = [
        write_sums(tmp_path / name / NAME, {("produce", "a", "b"): {START: 1}}, cluster=name) for name in ("first", "second")
    ]
    with pytest.raises(TrafficError, match="2 clusters"):
        find_traffic(list(map(str, files))).look("UTC")


def test_a_folder_gives_each_file_once_the_complete_one_before_the_open_one(tmp_path: Path) -> None:
    sums: Sums = {("produce", "alice", "app"): {START: 1}}
    complete = write_sums(tmp_path / "a" / NAME, sums)
    write_sums(tmp_path / "z" / f"{NAME}.open", sums)
    still_open = write_sums(tmp_path / f"{NAME.replace('recorder-1', 'recorder-2')}.open", sums, broker=2)
    (tmp_path / "quota-recorder-notes.txt").write_text("x", encoding="utf-8")
    assert recorder_files_in(tmp_path) == (str(complete), str(still_open))
    traffic = find_traffic([str(tmp_path)])
    assert (traffic.source, traffic.files, traffic.of_requests) == (Source.RECORDER, (str(complete), str(still_open)), False)


def test_a_file_that_is_completed_while_it_is_looked_for_is_read(tmp_path: Path) -> None:
    file = write_sums(tmp_path / f"{NAME}.open", {("produce", "alice", "app"): {START: 1}})
    names = recorder_files_in(tmp_path)
    file.rename(tmp_path / NAME)
    assert [row["records"] for row in rows_in(Path(names[0]))] == [1]


def test_compact_knows_a_file_by_its_first_line_open_or_complete(tmp_path: Path) -> None:
    file = write_sums(tmp_path / f"{NAME}.open", {("produce", "alice", "app"): {START: 1}})
    before = find_traffic([str(file)]).source_file(str(file))
    complete = write_members(tmp_path / NAME, [header(), ALICE], [["s", START, [0, 1]]], [["s", START + 1, [0, 1]]])
    after = find_traffic([str(complete)]).source_file(str(complete))
    assert before is not None
    assert after is not None
    assert before.id == after.id
    empty = write_members(tmp_path / NAME.replace("recorder-1", "recorder-2"), [])
    assert find_traffic([str(empty)]).source_file(str(empty)) is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200), st.integers(0, 2**40), st.booleans()), min_size=1, max_size=60))
def test_no_amount_is_lost_or_moved(tmp_path_factory: pytest.TempPathFactory, charges: list[tuple[int, int, int, bool]]) -> None:
    file = tmp_path_factory.mktemp("recorder") / NAME
    expected: Counter[tuple[str, int]] = Counter()
    members: list[list[Any]] = [[header(), *(["c", number, "produce", f"u{number}", "app"] for number in range(4))]]
    for number, second, amount, new_member in sorted(charges, key=lambda charge: charge[1]):
        if new_member:
            members.append([])
        members[-1].append(["s", START + second, [number, amount]])
        expected[f"u{number}", START + second] += amount
    rows = rows_in(write_members(file, *members))
    got = {(row["user"], row["ts_us"] // 1_000_000): row["records"] for row in rows if row["status"] == "charged"}
    assert got == expected
