"""A folder of compact gives each client its own seconds, whatever file they are in, and whoever else is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.compacting.segments import Compaction, SourceFile
from reconciler.traffic.columns import KnownClients
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kinds import Kind
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.seconds.stored_rows import StoredRows, open_folder
from reconciler.traffic.sources.normal_form import FILE, IDENTITY, ROWS
from tests.support.local_traffic import no_spark

START = 1_795_266_000
CLIENT = st.tuples(
    st.integers(1, 2), st.sampled_from([Kind.PRODUCE.value, Kind.FETCH.value]), st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, "x", "y"]), st.none(),
)  # fmt: skip
ROW = st.tuples(st.sampled_from(["/a.log", "/b.log"]), CLIENT, st.integers(0, 5), st.integers(0, 1000))


def as_row(file: str, client: tuple[object, ...], second: int, amount: int) -> dict[str, object]:
    values = {"status": "charged", "ts_us": (START + second) * 10**6, "records": amount, "overhead": 0, "throttled": False}
    return values | dict(zip(IDENTITY, client, strict=True)) | {"file": f"file://{file}", "tie": 0}


@settings(max_examples=25)
@given(st.lists(ROW, min_size=1, max_size=40), st.data())
def test_each_client_has_its_own_seconds(rows: list[tuple[str, tuple[object, ...], int, int]], data: st.DataObject) -> None:
    with TemporaryDirectory() as root:
        folder = SegmentFolder(Path(root))
        files = {Path(name): SourceFile(path=Path(name), id=name[1], size=1) for name, *_ in rows}
        batch = pa.RecordBatch.from_pylist([as_row(*row) for row in rows], schema=ROWS.append(FILE))
        Compaction(files=files, folder=folder).in_process([batch])
        stored = open_folder(folder, no_spark)

        clients = sorted({client for _, client, *_ in rows}, key=repr)
        assert {one.sort_key for one in stored.series} == {series_of(client).sort_key for client in clients}
        chosen = data.draw(st.sets(st.sampled_from(clients)))
        for some in (chosen, clients):
            found: Counter[tuple[object, ...]] = Counter()
            known = KnownClients.of([series_of(client) for client in some])
            read = stored.rows.only(known)
            assert isinstance(read, StoredRows)
            for part in read._read_here((*IDENTITY, "ts_us", "records")):
                for *names, ts_us, amount in zip(*(column.to_pylist() for column in part.columns), strict=True):
                    found[*names, ts_us // 10**6 - START] += amount
            expected: Counter[tuple[object, ...]] = Counter()
            for _, client, second, amount in rows:
                if client in some:
                    expected[*client, second] += amount
            assert found == expected


def series_of(client: tuple[Any, ...]) -> Series:
    broker, kind, user, client_id, ip = client
    return Series(broker=broker, kind=Kind(kind), user=user, client_id=client_id, ip=ip, requests=1, amount=0)
