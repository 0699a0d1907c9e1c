"""The addresses of connections in per-second totals, and in those of format 1.1, which has them as client-ids."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.errors import TrafficError
from reconciler.model import DEFAULT, BacktestReport, Entity, Verdict
from reconciler.traffic import Backtest, BacktestRequest, Compaction, Kind, Reading, SegmentFolder, SourceFile, find_traffic
from reconciler.traffic.seconds.folder import SERIES
from reconciler.traffic.seconds.history import SecondsSource, open_history
from tests.support.all_kinds import rows, write

EARLIER = Path(__file__).parent / "totals" / "format-1.1"
"""What the version before format 2.0 made of ``all_kinds``."""
ADDRESSES = ["0:0:0:0:0:0:0:1", "10.0.0.7", "10.0.0.8"]
ANYBODY, ANY_ADDRESS, ADDRESS = Entity.of({"user": DEFAULT}), Entity.of({"ip": DEFAULT}), Entity.of({"ip": "10.0.0.7"})
CURRENT = {ANYBODY: {"producer_byte_rate": 1e6}, ANY_ADDRESS: {"connection_creation_rate": 50.0}}
PROPOSED = {ANYBODY: {"producer_byte_rate": 2000.0}, ANY_ADDRESS: {"connection_creation_rate": 50.0},
            ADDRESS: {"connection_creation_rate": 3.0}}  # fmt: skip


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EARLIER, tmp_path / "earlier"))


def compact(folder: Path, source: Path, name: str) -> None:
    """``source``, as a file of this name, into the folder."""
    known = SourceFile(path=source, id=name, size=source.stat().st_size)
    batches = find_traffic([str(source)]).batches(Reading(also=("file",)))
    Compaction(files={source: known}, folder=SegmentFolder(folder)).in_process(batches)


def no_session() -> None:
    raise AssertionError("Spark was started")


def judge(folder: Path) -> BacktestReport:
    recorded = SecondsSource(SegmentFolder(folder), no_session)  # type: ignore[arg-type]  # a session is never made
    return Backtest(recorded, BacktestRequest(current=CURRENT, proposed=PROPOSED, declared=PROPOSED)).report()


@pytest.mark.parametrize("with_sums", [True, False], ids=["with the sums of clients", "without"])
def test_totals_of_format_1_1_have_addresses_and_no_names_of_connections(earlier: Path, with_sums: bool) -> None:
    if not with_sums:
        shutil.rmtree(earlier / "clients")
    series = open_history(SegmentFolder(earlier)).series
    connections = [one for one in series if one.kind is Kind.CONNECTION]
    assert [(one.user, one.client_id, one.ip) for one in connections] == [(None, None, ip) for ip in ADDRESSES]
    assert [(one.user, one.client_id, one.ip) for one in series if one.kind is Kind.PRODUCE] == [("alice", "app", None)]
    assert all(one.is_identified for one in series)


def test_totals_of_both_formats_give_one_report(earlier: Path, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", rows())
    compact(tmp_path / "now", tmp_path / "a.parquet", "a")
    stored = next((tmp_path / "now").glob(f"data/*/{SERIES}/*.parquet"))
    assert pq.read_table(stored).column("ip").drop_null().to_pylist() != []
    report = judge(earlier)
    assert report == judge(tmp_path / "now")
    assert [one.verdict for one in report.verdicts if one.name.other == (("ip", "10.0.0.7"),)] == [Verdict.THROTTLED]


def test_one_address_in_segments_of_both_formats_is_one_client(earlier: Path, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", rows())
    once = {one.sort_key: one.amount for one in open_history(SegmentFolder(earlier)).series}
    compact(earlier, tmp_path / "a.parquet", "b")
    history = open_history(SegmentFolder(earlier))
    assert {one.sort_key: one.amount for one in history.series} == {client: 2 * amount for client, amount in once.items()}
    assert not history.renumberings, "an address keeps its number"


def test_totals_of_a_later_format_are_refused(earlier: Path) -> None:
    document = earlier / "segments" / "a.json"
    document.write_text(document.read_text(encoding="utf-8").replace('"1.1"', '"3.0"'), encoding="utf-8")
    with pytest.raises(TrafficError, match="of another version of this tool"):
        open_history(SegmentFolder(earlier))
