"""The temporary folder of a Spark session: removed at the end, and by the next run when the first one was killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.traffic.spark_setup import spark_folder

RUN = """
import time
from reconciler.traffic.spark_setup import spark_folder
with spark_folder() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@contextlib.contextmanager
def other_run(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process inside ``spark_folder``, and its folder."""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen([sys.executable, "-c", RUN], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


def test_a_folder_ends_with_its_run_also_after_an_error(temporary: Path) -> None:
    with pytest.raises(FileExistsError), spark_folder() as folder:
        (temporary / folder).mkdir()

    assert list(temporary.iterdir()) == []


def test_the_next_run_removes_the_folder_of_a_killed_one_and_no_other(temporary: Path) -> None:
    foreign = temporary / "kafka-quotas-spark-of-another-program"
    foreign.mkdir()
    link = temporary / "kafka-quotas-spark-link"
    link.symlink_to(foreign)
    with other_run(temporary) as (_, alive), other_run(temporary) as (killed_run, killed):
        (killed / "blocks").mkdir()
        with spark_folder() as folder:
            assert {path.name for path in temporary.iterdir()} == {
                alive.name,
                killed.name,
                foreign.name,
                link.name,
                Path(folder).name,
            }
        killed_run.kill()
        killed_run.wait()

        with spark_folder() as folder:
            assert {path.name for path in temporary.iterdir()} == {alive.name, foreign.name, link.name, Path(folder).name}
