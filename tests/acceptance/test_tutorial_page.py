"""The commands that docs/tutorial.md shows are executed in their order, and print what the page says they print."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.features.sandbox.java import runtime_for
from reconciler.files import cache_folder
from tests.support.command import Done, environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
SHOWN = [
    (limit, command, printed)
    for limit, block in re.findall(r"(?:<!-- backtest: (\w+) -->\n)?```console\n(.*?)```", PAGE, re.DOTALL)
    for command, printed in re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
]
"""The limit that the page tells the reader to write first (or nothing), the command, and its output."""
EXIT_CODES = {"Refused": 3, "Drift": 2}


def as_on_the_page(printed: str, cluster_id: str) -> str:
    """What differs from run to run, taken out; both sides go through here."""
    printed = printed.replace(cluster_id, "lu69iAKIJEwaUOPC1DZgJg")
    printed = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "THEN", printed)
    printed = re.sub(r" in [0-9.]+ s, verified", " in SECONDS, verified", printed)
    printed = re.sub(r"baseline HEAD \([0-9a-f]{12}\)", "baseline HEAD", printed)
    return re.sub(r"sha256:[0-9a-f]{64}", "sha256", printed)


class Reader:
    """A user who types the page word by word into a shell, in an empty folder, and puts in what the page asks for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        home, cache, programs = (folder.parent / name for name in ("home", "cache", "bin"))
        for new in (home, cache, programs):
            new.mkdir()
        (home / ".gitconfig").write_text("[user]\n  name = reader\n  email = reader@example.com\n")
        (cache / "jars").symlink_to(cache_folder() / "jars")
        program = programs / "kafka-quotas"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconciler "$@"\n')
        program.chmod(0o755)
        self.environ = environment(
            {
                "HOME": str(home),
                "KAFKA_QUOTAS_CACHE": str(cache),
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
            }
        )

    def type(self, command: str) -> Done:
        """Run one line as a shell does. ``export`` and ``cd`` last."""
        word, _, rest = command.partition(" ")
        if word == "export":
            name, _, value = rest.partition("=")
            self.environ[name] = value
            return Done(code=0, out="", err="")
        if word == "cd":
            self.folder /= rest
            return Done(code=0, out="", err="")
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Done(code=done.returncode, out=done.stdout, err=done.stderr)

    @contextlib.contextmanager
    def second_terminal(self, command: str) -> Iterator[dict[str, str]]:
        """The rows that a command prints which runs until Ctrl-C, by name."""
        pipe = subprocess.PIPE
        with subprocess.Popen(shlex.split(command), cwd=self.folder, env=self.environ, stdout=pipe, text=True) as kafka:
            assert kafka.stdout is not None
            lines = itertools.takewhile(lambda line: not line.startswith("Stop it with Ctrl-C"), kafka.stdout)
            try:
                yield {name: value.strip() for name, _, value in (line.strip().partition("  ") for line in lines)}
            finally:
                kafka.send_signal(signal.SIGINT)
        assert kafka.returncode == 0


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    runtime_for(DEFAULT_KAFKA_VERSION)
    (tmp_path / "empty").mkdir()
    return Reader(tmp_path / "empty")


@pytest.mark.large
@pytest.mark.kafka
@pytest.mark.spark
def test_every_command_prints_what_the_page_says(reader: Reader) -> None:
    (manifest,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (start,) = (command for _, command, _ in SHOWN if " sandbox " in command)
    with reader.second_terminal(start) as rows:
        reader.environ["BROKERS"] = rows["bootstrap server"]
        follow(reader, manifest, rows["cluster id"])


def follow(reader: Reader, manifest: str, cluster_id: str) -> None:
    for limit, command, printed in SHOWN:
        if limit or "validate" in command:
            (reader.folder / "quotas" / "team-bob.yaml").write_text(manifest.replace("10KiB", limit or "10KiB"))
        if command.startswith("export BROKERS=") or " sandbox " in command:
            continue
        done = reader.type(f"export CHECKOUT={ROOT}" if command.startswith("export CHECKOUT=") else command)
        real, shown = as_on_the_page(done.out, cluster_id), as_on_the_page(printed, cluster_id)
        if limit:
            assert [line for line in shown.splitlines() if line not in real.splitlines()] == []
        else:
            assert real == shown, f"{command}: {done.err}"
        assert done.code == next((code for word, code in EXIT_CODES.items() if printed.startswith(word)), 0), command


def test_all_commands_of_the_page_are_found() -> None:
    assert len(SHOWN) == PAGE.count("\n$ ") == 26
    assert [limit for limit, _, _ in SHOWN if limit] == ["10KiB", "360KiB"]
