"""Small files with long names are read in little memory."""

from __future__ import annotations

import datetime
import resource
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command import COMMAND, environment
from tests.support.manifests import cluster, quotas

BEGIN = datetime.datetime(2026, 11, 20, 8, tzinfo=datetime.UTC)
MANIFEST = quotas(({"user": "bob"}, {"producer_byte_rate": "1MiB"})) + "---\n" + cluster(backtest={"history": {"hours": 0}})
MOST_BYTES = 3_000_000_000
"""Of addresses: Python and its libraries take one, without any traffic."""


def write(path: Path, users: list[str], user_of_row: list[int], clients: list[str], client_of_row: list[int]) -> None:
    """A small file of produce requests, one each millisecond."""
    rows = len(user_of_row)
    columns = {
        "ts": pa.array([BEGIN + datetime.timedelta(milliseconds=row) for row in range(rows)], pa.timestamp("us", "UTC")),
        "interval_ms": pa.array([0] * rows, pa.int32()),
        "broker": pa.array([1] * rows, pa.int32()),
        "user": pa.DictionaryArray.from_arrays(pa.array(user_of_row, pa.int32()), pa.array(users)),
        "client_id": pa.DictionaryArray.from_arrays(pa.array(client_of_row, pa.int32()), pa.array(clients)),
        "kind": pa.array(["produce"] * rows),
        "amount": pa.array([100] * rows, pa.int64()),
        "semantics": pa.array(["event"] * rows),
    }
    pq.write_table(pa.table(columns), path, compression="zstd", write_statistics=False, dictionary_pagesize_limit=2**31 - 1)
    assert path.stat().st_size < 300_000


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def run(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (work / "quotas.yaml").write_text(MANIFEST, "utf-8")
    command = [*COMMAND, *arguments]
    return subprocess.run(
        command, check=False, cwd=work, env=environment(None), preexec_fn=limited, capture_output=True, text=True, timeout=300
    )


QUESTIONS = {
    "seconds": ("backtest", "quotas.yaml", "--max-unreadable", "5%", "--traffic", "t.parquet"),
    "compact": ("compact", "--max-unreadable", "5%", "--traffic", "t.parquet", "--folder", "cells"),
}


@pytest.mark.bulk
@pytest.mark.parametrize("question", QUESTIONS)
def test_one_name_in_many_rows_is_held_once(tmp_path: Path, question: str) -> None:
    write(tmp_path / "t.parquet", ["u" * 32_000, "bob"], [row % 2 for row in range(60_000)], ["app"], [0] * 60_000)
    done = run(tmp_path, *QUESTIONS[question])
    assert done.returncode == 0, done.stderr[-2000:]
