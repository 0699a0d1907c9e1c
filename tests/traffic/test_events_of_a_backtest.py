"""``-v`` of backtest and compact: which files are read, why with or without Spark, how much is shuffled and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command, Done, run
from tests.support.manifests import quotas
from tests.support.recorded_parquet import Flow, write_traffic

pytestmark = pytest.mark.xdist_group("spark")  # whose session is asked for by name
MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": 500}))
HERE = pytest.param((), "this process", id="this process")
SPARK = pytest.param(("--master", "local[2]"), "Spark", marks=pytest.mark.spark, id="Spark")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas.yaml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "rows").mkdir()
    write_traffic(tmp_path / "rows" / "all.parquet", [Flow(user=user, amount=1_000, end_s=30) for user in ("alice", "bob")])
    return tmp_path


def events(done: Done) -> list[dict[str, Any]]:
    """The records of stderr, in their order."""
    return [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]


def one(records: list[dict[str, Any]], event: str, **data: object) -> dict[str, Any]:
    """The only record of this event with these data."""
    (found,) = (row for row in records if row["event"] == event and data.items() <= row.items())
    return found


def backtest(command: Command, folder: Path, traffic: str, *options: str) -> list[dict[str, Any]]:
    done = command(
        "backtest", "quotas.yaml", "--traffic", traffic, "--format", "json", "-v", "--log-format", "json", *options, cwd=folder
    )
    assert done.json()["provenance"]["requests"] == 60
    return events(done)


@pytest.mark.parametrize(("options", "engine"), [HERE, SPARK])
def test_v_logs_the_files_the_engine_with_its_reason_and_each_stage(
    folder: Path, options: tuple[str, ...], engine: str, request: pytest.FixtureRequest
) -> None:
    command: Command = request.getfixturevalue("warm_command") if options else run
    found = backtest(command, folder, "rows", *options)

    assert one(found, "traffic found")["source"] == "normal-form"
    assert one(found, "traffic found")["first"] == [str((folder / "rows" / "all.parquet").resolve())]
    chosen = one(found, "engine chosen")
    assert chosen["engine"] == engine
    assert chosen["why"] == ("Spark was asked for" if options else "the traffic is small")
    assert chosen["read_bytes"] == 60 * 64
    opened = one(found, "traffic opened")
    assert (opened["rows"], opened["charged"], opened["clients"], opened["brokers"]) == (60, 60, 2, [1])
    # In this process, several totals come from one pass over the rows.
    (clients,) = (row for row in found if row["event"] == "rows added up" and "clients" in row["what"].split(", "))
    assert (clients["engine"], clients["results"]) == (engine, 2)
    assert clients["milliseconds"] > 0
    judged = one(found, "groups judged", what="verdicts by seconds")
    assert (judged["engine"], judged["results"]) == (engine, 2)
    assert one(found, "traffic judged")["verdicts"] == 2
    if options:
        assert one(found, "running Spark used")["where"] == "local[2]"
    else:
        assert one(found, "file opened")["rows"] == 60
