"""The demonstration as a newcomer runs it: every step, and what an interrupt leaves behind, which is nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import COMMAND, environment
from tests.support.processes import commands_with

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

REPOSITORY = Path(__file__).parents[3]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The demo with a temporary folder of its own, in a process group of its own, as at a terminal."""
    return subprocess.Popen(
        [*COMMAND, "sandbox", "demo", *arguments],
        cwd=REPOSITORY,
        env=environment({"TMPDIR": str(folder), "CI": "true"}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def assert_nothing_is_left(folder: Path) -> None:
    deadline = time.monotonic() + 30
    while left := commands_with(str(folder)):
        assert time.monotonic() < deadline, left
    assert list(folder.iterdir()) == []


def test_the_demo_walks_the_whole_road(tmp_path: Path) -> None:
    demo = start(tmp_path, "--seconds", "9")
    output, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, output
    assert "no findings in 4 files" in output
    assert "5 to create, 0 to update, 0 to delete" in output
    throttled = re.findall(r"^ +throttled .*", output, re.MULTILINE)
    assert len(throttled) == 1, output
    assert re.fullmatch(r" +throttled +user analytics: producer_byte_rate .* [0-9.]+ MiB/s", throttled[0])
    assert 'judged by Spark on "local[2]"' in output
    assert "guard default-entity" in output.lower()
    assert "(exit code 3)" in output
    assert re.search(r"Applied 5 changes in \S+ s, verified on 1 broker\.", output)
    assert "Quota configs for the default user-principal are" in output
    throttles = re.findall(r"longest throttle (\d+) ms", output)
    assert throttles[0] == "0"
    assert int(throttles[1]) > 0
    assert "No changes: the cluster has what the manifests declare (5 unchanged, 0 unmanaged)." in output
    commands = re.findall(r"^\$ (.*)", output, re.MULTILINE)
    assert max(map(len, commands)) <= 120
    assert str(tmp_path) not in "".join(commands)
    assert output.splitlines()[-2] == "  kafka-quotas init quotas --ci none --bootstrap-server HOST:PORT"
    assert_nothing_is_left(tmp_path)


def test_without_the_extra_of_the_backtest_it_starts_no_broker(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['msgspec'] = None; from reconciler.cli.main import main; sys.exit(main(['sandbox', 'demo']))"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "Install the extra traffic (kafka-quotas explain install)" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("moment", ["2. Three teams produce", pytest.param("$ kafka-quotas backtest", marks=pytest.mark.large)])
def test_an_interrupt_leaves_no_process_and_no_folder(tmp_path: Path, moment: str) -> None:
    demo = start(tmp_path, "--seconds", "2")
    assert demo.stdout is not None
    seen = ""
    for row in demo.stdout:
        seen += row
        if moment in row:
            break
    assert moment in seen
    os.killpg(demo.pid, signal.SIGINT)
    rest, _ = demo.communicate(timeout=300)
    assert demo.returncode == 130, seen + rest
    assert "Traceback" not in rest
    assert_nothing_is_left(tmp_path)
