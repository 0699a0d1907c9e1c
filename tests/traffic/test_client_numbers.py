"""Numbers of clients in per-second totals: a number that two clients share, or a client with two, changes no result."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import TrafficError
from reconciler.traffic.seconds.compact import Compaction, SourceFile
from reconciler.traffic.seconds.file_totals import Client, client_number, number_clients
from reconciler.traffic.seconds.folder import SERIES, TOTALS, Covered, FileSummary, Segment, SegmentFolder
from reconciler.traffic.seconds.history import History, open_history, read_totals
from reconciler.traffic.sources.normal_form import FILE, ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_795_266_000
NAMES = st.sampled_from([None, "", "a", "b", "\ud800"])
CLIENTS = ("a", "b", "c", "d", None)


def write_history(root: Path, numbers: list[dict[str | None, int]]) -> SegmentFolder:
    """A segment for each item: the number of each client-id. In segment s, client n sends n + 1 bytes in second s * 10 + n."""
    folder = SegmentFolder(root)
    for place, of_client in enumerate(numbers):
        made = folder.fresh(f"run{place}")
        rows = sorted(
            (number, START + 10 * place + CLIENTS.index(name), CLIENTS.index(name) + 1) for name, number in of_client.items()
        )
        for part in (TOTALS, SERIES):
            (made / part).mkdir()
        columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(columns, names=["series", "second", "amount"]), made / TOTALS / "part.parquet")
        clients = {
            "series": list(of_client.values()), "broker": [1] * len(of_client), "kind": ["produce"] * len(of_client),
            "user": ["u"] * len(of_client), "client_id": pa.array(of_client, pa.string()), "requests": [1] * len(of_client),
            "amount": [CLIENTS.index(name) + 1 for name in of_client], "largest": [1] * len(of_client),
            "throttled": [0] * len(of_client),
        }  # fmt: skip
        pq.write_table(pa.table(clients), made / SERIES / "part.parquet")
        coverage = Covered(broker=1, requests=len(rows), start_us=START * 10**6, end_us=(START + 99) * 10**6)
        folder.publish(
            Segment(
                id=str(place),
                source="x.log",
                size=1,
                folder=f"s{place}",
                summary=FileSummary(coverage=(coverage,), statuses={"charged": len(rows)}, minutes={}),
            ),
            made,
        )
    return folder


def totals_by_client(history: History) -> dict[str | None, list[tuple[int, int]]]:
    """By client-id, each read alone: seconds since ``START`` and amounts."""
    found = {}
    for one in history.series:
        batches = read_totals(history, [one.key])
        found[one.client_id] = sorted(
            (second - START, amount) for batch in batches for _, second, amount in zip(*(c.tolist() for c in batch), strict=True)
        )
    return found


SAME, SHARED = {"a": 5, "b": 7, None: 9}, {"c": 5, "a": 7, "b": 0, "d": -(2**63)}


@pytest.mark.parametrize(
    "numbers",
    [[SAME, SAME], [SAME, SHARED], [SHARED, SAME, {"d": 9}], [{"a": 1}, {"a": 0, "b": 1}, {"b": 2**63 - 1, "c": 0}]],
    ids=["none", "two segments", "three segments", "in a ring"],
)
def test_totals_belong_to_their_client_whatever_its_number(tmp_path: Path, numbers: list[dict[str | None, int]]) -> None:
    history = open_history(write_history(tmp_path, numbers))
    wanted: dict[str | None, list[tuple[int, int]]] = {}
    for place, of_client in enumerate(numbers):
        for name in of_client:
            wanted.setdefault(name, []).append((10 * place + CLIENTS.index(name), CLIENTS.index(name) + 1))
    assert totals_by_client(history) == wanted
    assert len({one.key for one in history.series}) == len(history.series) == len(wanted)
    assert {one.client_id: one.amount for one in history.series} == {name: sum(a for _, a in of) for name, of in wanted.items()}


def test_numbers_that_all_segments_agree_on_are_the_keys(tmp_path: Path) -> None:
    history = open_history(write_history(tmp_path, [SAME, SAME]))
    assert {one.client_id: one.key for one in history.series} == SAME
    assert not history.renumberings


def test_a_segment_with_one_number_for_two_clients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrafficError, match="0 has one number for two clients"):
        open_history(write_history(tmp_path, [{"a": 5, "b": 5}]))


def crafted() -> tuple[Client, Client]:
    """Two client-ids of one user with one number, found in a fraction of a second."""
    seen: dict[int, Client] = {}
    for name in itertools.count():
        one = Client(1, "produce", "mallory", f"app-{name}")
        other = seen.setdefault(client_number(one), one)
        if other is not one:
            return other, one
    raise AssertionError


@given(st.lists(st.builds(Client, st.integers(0, 2), st.just("fetch"), NAMES, NAMES), unique=True, max_size=40), st.randoms())
@settings(deadline=None)
def test_numbers_are_distinct_whatever_the_hash_and_the_order(clients: list[Client], chance: random.Random) -> None:
    for number in (client_number, lambda one: one.broker, lambda _: (1 << 32) - 2, lambda _: -1):
        found = dict(zip(clients, number_clients(clients, number), strict=True))
        assert len(set(found.values())) == len(clients)
        assert all(-(2**63) <= one < 2**63 for one in found.values())
        # The upper half, which keeps a user's clients together, stays.
        assert all(one >> 32 == number(client) >> 32 for client, one in found.items())
        # Who has a number alone keeps it.
        times = Counter(map(number, clients))
        assert all(found[client] == number(client) for client in clients if times[number(client)] == 1)
        chance.shuffle(clients)
        assert dict(zip(clients, number_clients(clients, number), strict=True)) == found


def test_the_totals_of_clients_with_one_number_in_one_file_stay_apart(tmp_path: Path) -> None:
    history = open_history(compact_here(tmp_path, *crafted()))
    assert sorted(one.amount for one in history.series) == [150, 1500]
    for one in history.series:
        totals = list(read_totals(history, [one.key]))
        assert sum(int(amounts.sum()) for _, _, amounts in totals) == one.amount


def compact_here(root: Path, *clients: Client) -> SegmentFolder:
    """The first client sends 15 times 10 bytes, the second one 100, and so on, all in one file."""
    rows = [row(client, 10 ** (place + 1), at) for place, client in enumerate(clients) for at in range(15)]
    batch = pa.RecordBatch.from_pylist(rows, schema=ROWS.append(FILE))
    source = SourceFile(path=Path("/a.log"), id="a", size=1)
    Compaction(files={source.path: source}, folder=SegmentFolder(root)).in_process([batch])
    return SegmentFolder(root)


def row(client: Client, amount: int, at: int) -> dict[str, object]:
    values = {"status": "charged", "ts_us": (START + at) * 10**6, "records": amount, "overhead": 0, "throttled": False, "tie": at}
    return values | client._asdict() | {"file": "file:///a.log"}


@pytest.mark.spark
def test_spark_keeps_clients_with_one_number_in_one_file_apart(spark: SparkSession, tmp_path: Path) -> None:
    from reconciler.traffic.shuffle.on_spark import KeptRows

    clients = crafted()
    here = open_history(compact_here(tmp_path / "here", *clients))
    rows = [row(client, 10 ** (place + 1), at) for place, client in enumerate(clients) for at in range(15)]
    source = SourceFile(path=Path("/a.log"), id="a", size=1)
    shares = [rows[place::3] for place in range(3)]
    kept = KeptRows.of_shares(spark, shares, lambda share: [pa.RecordBatch.from_pylist(share, schema=ROWS.append(FILE))])
    with contextlib.closing(kept):
        Compaction(files={source.path: source}, folder=SegmentFolder(tmp_path / "there")).on_spark(kept)
    there = open_history(SegmentFolder(tmp_path / "there"))
    assert there.series == here.series
    (a,), (b,) = here.files(), there.files()
    assert Path(a.path).read_bytes() == Path(b.path).read_bytes()


@pytest.mark.spark
def test_spark_and_this_process_judge_renumbered_clients_alike(spark: SparkSession, tmp_path: Path) -> None:
    from reconciler.model.entity import DEFAULT, Entity
    from reconciler.resolution import Resolver
    from reconciler.traffic.judging.grouping import group_series
    from reconciler.traffic.kernels.sampled_rate import Era
    from reconciler.traffic.kinds import KEY_OF_KIND, Kind
    from reconciler.traffic.seconds.folder import SegmentFolder
    from reconciler.traffic.seconds.history import SecondsSource

    history = open_history(write_history(tmp_path, [{"a": 5, "b": 7}, {"a": 7, "b": 5}]))
    key = KEY_OF_KIND[Kind.PRODUCE].value
    quotas = {Entity.of({"user": DEFAULT, "client-id": DEFAULT}): {key: 0.1}}
    grouping = group_series(history.series, None, {key: Resolver(quotas, key)})
    groups = range(len(grouping.groups))
    here, on_spark = (
        SecondsSource(SegmentFolder(tmp_path), lambda: spark, most_here=most).by_seconds(grouping, groups, Era.OVERLAPPING)
        for most in (10**6, 0)
    )
    assert on_spark == here
    assert sorted(here) == [0, 1]
