"""Logs to cells: the same sums as the requests, whatever the files, and nothing half-written taken for whole."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.seconds.folder import SegmentFolder
from reconciler.traffic.sources.log_files import find_logs
from tests.support.placed_totals import no_spark

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
