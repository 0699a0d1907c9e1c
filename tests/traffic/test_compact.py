"""A folder of per-second totals: its addresses, its totals of clients, and documents that it cannot be read by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.errors import TrafficError
from reconciler.features.compacting.segments import Compaction, SourceFile
from reconciler.traffic import Kind, Reading, SegmentFolder, find_traffic
from reconciler.traffic.seconds.stored_rows import open_folder
from tests.support.all_kinds import rows, write
from tests.support.local_traffic import no_spark

ADDRESSES = ["0:0:0:0:0:0:0:1", "10.0.0.7", "10.0.0.8"]


@pytest.fixture
def folder(tmp_path: Path) -> SegmentFolder:
    """Two segments of the same requests."""
    source = tmp_path / "a.parquet"
    write(source, rows())
    made = SegmentFolder(tmp_path / "now")
    for name in ("a", "b"):
        known = SourceFile(path=source, id=name, size=source.stat().st_size)
        batches = find_traffic([str(source)]).batches(Reading(also=("file",)))
        Compaction(files={source: known}, folder=made).in_process(batches)
    return made


def test_connections_have_an_address_and_no_names_in_each_segment(folder: SegmentFolder) -> None:
    connections = [one for one in open_folder(folder, no_spark).series if one.kind is Kind.CONNECTION]
    assert [(one.user, one.client_id, one.ip) for one in connections] == [(None, None, ip) for ip in ADDRESSES]


def test_totals_of_a_later_format_or_of_no_document_are_refused(folder: SegmentFolder, tmp_path: Path) -> None:
    document = tmp_path / "now" / "segments" / "a.json"
    segment = json.loads(document.read_text(encoding="utf-8"))
    document.write_text(json.dumps(segment | {"format_version": "2.0"}), encoding="utf-8")
    with pytest.raises(TrafficError, match="of another version of this tool"):
        open_folder(folder, no_spark)
    document.write_text("{}", encoding="utf-8")
    with pytest.raises(TrafficError, match=r"a\.json does not describe per-second totals"):
        folder.segments()
