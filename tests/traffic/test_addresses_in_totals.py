"""The addresses of connections in per-second totals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.errors import TrafficError
from reconciler.features.compacting.segments import Compaction, SourceFile
from reconciler.traffic import Kind, Reading, SegmentFolder, find_traffic
from reconciler.traffic.seconds.stored_rows import open_folder
from tests.support.all_kinds import rows, write
from tests.support.placed_totals import no_spark

ADDRESSES = ["0:0:0:0:0:0:0:1", "10.0.0.7", "10.0.0.8"]


def compact(folder: Path, source: Path, name: str) -> None:
    """``source``, as a file of this name, into the folder."""
    known = SourceFile(path=source, id=name, size=source.stat().st_size)
    batches = find_traffic([str(source)]).batches(Reading(also=("file",)))
    Compaction(files={source: known}, folder=SegmentFolder(folder)).in_process(batches)


def test_connections_have_an_address_and_no_names_in_each_segment(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", rows())
    for name in ("a", "b"):
        compact(tmp_path / "now", tmp_path / "a.parquet", name)
    history = open_folder(SegmentFolder(tmp_path / "now"), no_spark)
    connections = [one for one in history.series if one.kind is Kind.CONNECTION]
    assert [(one.user, one.client_id, one.ip) for one in connections] == [(None, None, ip) for ip in ADDRESSES]


def test_totals_of_a_later_format_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", rows())
    compact(tmp_path / "now", tmp_path / "a.parquet", "a")
    document = tmp_path / "now" / "segments" / "a.json"
    segment = json.loads(document.read_text(encoding="utf-8"))
    document.write_text(json.dumps(segment | {"format_version": "2.0"}), encoding="utf-8")
    with pytest.raises(TrafficError, match="of another version of this tool"):
        open_folder(SegmentFolder(tmp_path / "now"), no_spark)
