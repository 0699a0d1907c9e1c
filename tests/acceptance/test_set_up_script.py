"""tools/setup.sh on machines that lack something, and after a set-up that was cut short.

The script runs for real under the machine's ``sh``; Python, pip and Java are small programs of this test's own, so that each
lack can be had on any machine. ``pip-calls`` in the checkout counts the installs.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ["sh", "cat", "cksum", "date", "dirname", "head", "mkdir", "rm", "sed", "tail", "cp", "chmod", "flock"]
PYTHON = """#!/bin/sh
version={version}
case "$*" in
  -V) echo "Python $version.1" ;;
  "-c import sys;"*) echo "$version" ;;
  "-c import ensurepip, venv") {ensurepip} ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip --version") echo pip ;;
  "-m pip install "*) echo "$@" >> pip-calls; {pip} ;;
  *) exit 0 ;;
esac
"""
JAVA = """#!/bin/sh
echo 'openjdk version "{version}" 2026-01-01' >&2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A checkout, and a PATH with exactly the programs put there."""

    checkout: Path
    programs: Path

    def put(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def put_python(self, version: str, *, name: str = "python3", ensurepip: str = ":", pip: str = ":") -> None:
        self.put(name, PYTHON.format(version=version, ensurepip=ensurepip, pip=pip))

    def put_java(self, version: str = "17.0.2") -> None:
        self.put("java", JAVA.format(version=version))

    def set_up(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.programs), "HOME": str(self.checkout)}
        command = [str(self.checkout / "tools" / "setup.sh"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)

    @property
    def installs(self) -> int:
        calls = self.checkout / "pip-calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0


@pytest.fixture
def machine(tmp_path) -> Machine:
    """A machine with Java 17 and nothing of Python."""
    made = Machine(checkout=tmp_path / "checkout with blanks", programs=tmp_path / "bin")
    (made.checkout / "tools").mkdir(parents=True)
    made.programs.mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", made.checkout / "tools")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, made.checkout)
    for tool in TOOLS:
        if found := shutil.which(tool, path=os.defpath):
            (made.programs / tool).symlink_to(found)
    made.put_java()
    return made


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a refused set-up."""
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    return line


def test_without_python_one_sentence_says_which_is_needed(machine):
    assert "Python 3.11 or newer is needed" in refusal(machine.set_up())


def test_a_failed_install_shows_why_and_starts_from_nothing_the_next_time(machine):
    machine.put_python("3.11", pip="echo no route to host; exit 1")
    failed = machine.set_up()
    leftover = machine.checkout / ".venv" / "half-installed"
    leftover.touch()
    machine.put_python("3.11")

    done = machine.set_up()

    assert failed.returncode == 1
    assert "no route to host" in failed.stderr
    assert done.returncode == 0, done.stderr
    assert not leftover.exists()
