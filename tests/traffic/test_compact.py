"""Logs to cells: the same sums as the requests, whatever the files, and nothing half-written taken for whole."""

from __future__ import annotations

import contextlib
import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.sources.log_files import find_logs
from tests.support.placed_totals import no_spark, stored_seconds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from reconciler.traffic.seconds.folder import Segment
    from reconciler.traffic.shuffle.on_spark import SparkRows

    Rows: TypeAlias = tuple[Path, SparkRows[pa.RecordBatch]]

pytestmark = pytest.mark.spark
LOG = Path(__file__).parent / "recordings" / "kafka-4.3.1" / "kafka-request.log.gz"


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    from reconciler.traffic.sources.on_spark import request_log_rows

    folder = tmp_path_factory.mktemp("logs of a broker")
    lines = gzip.decompress(LOG.read_bytes()).splitlines(keepends=True)
    half = len(lines) // 2
    (folder / "kafka-request.log.1").write_bytes(b"".join(lines[:half]))
    (folder / "kafka-request.log").write_bytes(b"".join(lines[half:]))
    with contextlib.closing(request_log_rows(spark, find_logs([f"7={folder}"]), also=("file",))) as found:
        yield folder, found


def compacted(rows: Rows, target: Path) -> tuple[Segment, ...]:
    from reconciler.features.compacting.segments import Compaction, SourceFile

    folder, kept = rows
    files = {
        path.resolve(): SourceFile(path=path, id=f"id-{number}", size=path.stat().st_size)
        for number, path in enumerate(sorted(folder.iterdir()))
    }
    return Compaction(files=files, folder=SegmentFolder(target)).on_spark(kept)


def test_cells_hold_what_the_requests_hold(spark: SparkSession, rows: Rows, tmp_path: Path) -> None:
    from reconciler.traffic import find_traffic
    from reconciler.traffic.seconds.stored_rows import open_folder
    from tests.support.traffic_rows import traffic_rows

    segments = compacted(rows, tmp_path)
    assert [segment.id for segment in segments] == ["id-0", "id-1"]
    folder = SegmentFolder(tmp_path)
    assert folder.segments() == segments
    charged = [row for row in traffic_rows(find_traffic([f"7={rows[0]}"])) if row.status == "charged"]
    assert sum(segment.requests for segment in segments) == len(charged)
    wanted: dict[tuple[str, str, str, int], int] = {}
    for row in charged:
        place = (row.kind, row.user, row.client_id, row.ts_us // 1_000_000)
        wanted[place] = wanted.get(place, 0) + row.records + row.overhead
    found: Counter[tuple[Any, ...]] = Counter()
    for (_, kind, user, client_id, _), second, amount in stored_seconds(open_folder(folder, no_spark)):
        found[kind, user, client_id, second] += amount
    assert found == wanted


def test_a_second_run_changes_nothing_and_leaves_nothing(rows: Rows, tmp_path: Path) -> None:
    one = compacted(rows, tmp_path)
    other = compacted(rows, tmp_path)
    told = [[(s.id, s.summary) for s in run] for run in (one, other)]
    assert told[0] == told[1]
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == sorted(s.folder for s in other)


def test_what_a_run_cut_short_left_is_not_read_and_goes(rows: Rows, tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    folder.fresh("abandoned").joinpath("cells").mkdir()
    (tmp_path / "data" / "id-0-old").mkdir()
    assert folder.segments() == ()
    compacted(rows, tmp_path)
    assert not (tmp_path / "data" / ".abandoned").exists()
    assert not (tmp_path / "data" / "id-0-old").exists()


def test_a_document_that_is_none_is_told(tmp_path: Path) -> None:
    folder = SegmentFolder(tmp_path)
    folder.fresh("run")
    (tmp_path / "segments" / "x.json").write_text("{}")
    with pytest.raises(TrafficError, match=r"x\.json does not describe per-second totals"):
        folder.segments()


def test_clients_that_are_kept_added_up_are_those_of_the_segments(rows: Rows, tmp_path: Path) -> None:
    from reconciler.traffic.seconds.stored_rows import open_folder, save_client_totals

    compacted(rows, tmp_path)
    folder = SegmentFolder(tmp_path)
    (kept,) = (tmp_path / "clients").iterdir()
    found = open_folder(folder, no_spark).series

    kept.write_bytes(b"not Parquet at all")
    assert open_folder(folder, no_spark).series == found
    kept.unlink()
    assert open_folder(folder, no_spark).series == found
    (kept.parent / "of-other-segments.parquet").write_bytes(b"")
    save_client_totals(folder)
    assert list(kept.parent.iterdir()) == [kept]
    assert open_folder(folder, no_spark).series == found
