"""The recorder's files in backtest and compact: the same verdicts as from the per-second totals of the same requests."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reconciler.formats.shapes import load_schema
from reconciler.traffic import Reading, find_traffic
from reconciler.traffic.sources.request_log import LOG_KINDS
from tests.support.command import Command, run
from tests.support.manifests import quotas
from tests.support.recorder_lines import write_members, write_sums
from tests.traffic.conftest import RECORDINGS, recorded_snapshot

LOG = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"
NAME = "quota-recorder-3-20261123T024142050Z.jsonl.gz"
MANIFEST = quotas(
    ({"user": "alice"}, {"producer_byte_rate": "100KiB", "request_percentage": 5}),
    ({"user": {"default": True}}, {"consumer_byte_rate": "1MiB", "producer_byte_rate": "1GiB"}),
)
_SUMMARY = ("key", "bucket", "broker", "verdict", "limit_after", "seconds_certain", "seconds_over", "seconds_possible", "peak")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Manifests, a snapshot, and the sums of a recorded request log as the recorder writes them."""
    root = tmp_path_factory.mktemp("recorder")
    (root / "quotas").mkdir()
    (root / "quotas" / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    (root / "snapshot.json").write_text(recorded_snapshot(), encoding="utf-8")
    sums: dict[tuple[str, str | None, str | None], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for batch in find_traffic([f"3={LOG}"]).batches(Reading(kinds=LOG_KINDS)):
        for row in batch.to_pylist():
            if row["status"] == "charged":
                client = row["kind"], row["user"], row["client_id"]
                sums[client][row["ts_us"] // 1_000_000] += row["records"] + row["overhead"]
    write_sums(root / "recorded" / NAME, sums, broker=3, cluster=None)
    return root


def verdicts(folder: Path, traffic: str, code: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    options = ("--current", "snapshot.json", "--traffic", traffic, "--format", "json")
    done = run("backtest", "quotas", *options, cwd=folder)
    assert (done.code, done.err) == (code, "")
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    return document, [{name: verdict[name] for name in _SUMMARY} for verdict in document["verdicts"]]


def test_sums_of_the_recorder_are_judged_as_per_second_totals_are(folder: Path) -> None:
    done = run("compact", "--traffic", f"3={LOG}", "--folder", "cells", cwd=folder)
    assert done.code == 0, done.err
    document, recorded = verdicts(folder, "recorded")
    _, from_cells = verdicts(folder, "cells")
    assert recorded == from_cells
    assert document["provenance"]["source"] == "recorder"
    assert sum(verdict["seconds_certain"] for verdict in recorded) > 0


@pytest.mark.spark
def test_spark_reads_the_recorders_files_as_one_process_does(folder: Path, warm_command: Command) -> None:
    command = ("backtest", "quotas", "--current", "snapshot.json", "--traffic", "recorded", "--format", "json")
    here = run(*command, cwd=folder)
    there = warm_command(*command, "--master", "local[2]", cwd=folder)
    assert (here.code, there.code) == (0, 0), there.err
    judged_there, judged_here = there.json(), here.json()
    assert judged_there["provenance"].pop("spark") == "local[2]"
    assert judged_there == judged_here
    assert judged_here["verdicts"]


def test_compact_adds_the_recorders_files_once_also_when_they_have_grown(folder: Path) -> None:
    def compact() -> dict[str, Any]:
        done = run("compact", "--traffic", "recorded", "--folder", "compacted", "--format", "json", cwd=folder)
        assert (done.code, done.err) == (0, "")
        return done.json()

    file = folder / "recorded" / NAME
    still_open = file.rename(file.with_name(f"{NAME}.open"))
    whole = still_open.read_bytes()
    try:
        still_open.write_bytes(whole[: len(whole) // 2])
        assert len(compact()["compacted"]) == 1
        still_open.write_bytes(whole)
        assert len(compact()["compacted"]) == 1
        still_open.rename(file)
        again = compact()
        assert (again["compacted"], len(again["known"]), again["segments"]) == ([], 1, 1)
    finally:
        file.write_bytes(whole)
    assert verdicts(folder, "compacted")[1] == verdicts(folder, "recorded")[1]


def test_many_dropped_seconds_stop_the_backtest(folder: Path) -> None:
    file = folder / "recorded" / "quota-recorder-3-20261123T034142050Z.jsonl.gz"
    first = {"format": "kafka-quotas-recorder", "version": 1, "broker": 3, "cluster": None, "started_ms": 1}
    try:
        write_members(file, [first, ["d", 1_795_000_000, 1_795_090_000, "cannot write: IOException"]])
        done = run("backtest", "quotas", "--current", "snapshot.json", "--traffic", "recorded", cwd=folder)
        assert done.code == 1
        assert "the recorder dropped the seconds 1795000000 to 1795090000 (since 1970): cannot write: IOException" in done.err
    finally:
        file.unlink()


def test_a_file_that_was_not_closed_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded" / f"{NAME}.open").write_bytes((folder / "recorded" / NAME).read_bytes())
    options = ("--current", str(folder / "snapshot.json"), "--format", "json")
    closed, open_ = (
        run("backtest", str(folder / "quotas"), "--traffic", str(place / "recorded"), *options, cwd=tmp_path).json()
        for place in (folder, tmp_path)
    )
    notes = [note for note in open_["notes"] if note not in closed["notes"]]
    (note,) = [str(note) for note in notes]
    assert f"{NAME}.open" in note
    assert "was not closed" in note
