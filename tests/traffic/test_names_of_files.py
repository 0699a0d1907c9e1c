"""Spaces, percent signs and letters beyond ASCII in the names of folders and files, which Spark encodes here and there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command
from tests.support.lake_days import days_of_parquet, log_of, rows_of
from tests.support.manifests import quotas

pytestmark = [pytest.mark.spark, pytest.mark.large]
NAME = "tëam 1%20+x%"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / NAME
    work.mkdir()
    (work / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1KiB"})), "utf-8")
    return work


def write_traffic(work: Path, kind: str) -> None:
    if kind == "parquet":
        days_of_parquet(work / NAME, 2, file=f"part {NAME}")
        return
    for broker in (1, 2):
        folder = work / NAME / f"broker-{broker}"
        folder.mkdir(parents=True)
        (folder / f"kafka-request {NAME}.log.1").write_bytes(log_of("2026-11-20 08:00:00,000", port=50_000 + broker))


def run(command: Command, work: Path, *arguments: str) -> dict[str, Any]:
    done = command(*arguments, "--master", "local[2]", "--format", "json", cwd=work)
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json()
    return document


@pytest.mark.parametrize(("kind", "address"), [("parquet", True), ("logs", True)])
def test_files_are_read_once_whatever_their_names_are(work: Path, warm_command: Command, kind: str, address: bool) -> None:
    write_traffic(work, kind)
    traffic = f"file://{work}/{NAME}" if address else NAME
    out = f"file://{work}/out {NAME}"
    first, again = (run(warm_command, work, "compact", "--traffic", traffic, "--folder", out) for _ in range(2))
    assert first == again
    charged = [row["requests"] for row in rows_of(work / f"out {NAME}") if row["status"] == "charged"]
    assert sum(charged) == first["requests"] > 0

    of_files, of_days = (run(warm_command, work, "backtest", "quotas.yaml", "--traffic", place) for place in (traffic, out))
    covered = [[(part["broker"], part["from"]) for part in report["provenance"]["coverage"]] for report in (of_files, of_days)]
    assert covered[0] == covered[1]
    assert len(covered[0]) == 2
