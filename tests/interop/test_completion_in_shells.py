"""Completion as a real fish and a real zsh do it: what they offer for a word, and what the Tab key makes of a line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.cli.registry import commands
from tests.support.command import environment, run
from tests.support.terminal import Terminal

pytestmark = pytest.mark.interop

PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))


@pytest.fixture(params=["fish", "zsh"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A shell's program, and a folder with its completion script."""
    done = run("tool", "completion", request.param, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    (tmp_path / "script").write_text(done.out, encoding="utf-8")
    program = shutil.which(request.param)
    assert program, f"install {request.param}"
    return program, tmp_path


def completed(shell: tuple[str, Path], line: str) -> list[str]:
    """The words that fish offers at the end of the line; what the line is in zsh after the Tab key."""
    program, folder = shell
    if program.endswith("fish"):
        command = [program, "--no-config", "--command", f"source script; complete --do-complete '{line}'"]
        env = environment({"PATH": PATH, "HOME": str(folder)})
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return [text.split("\t")[0] for text in done.stdout.splitlines()]
    terminal = Terminal(folder, "-f", "-i", command=(program,), env={"PATH": PATH, "HOME": str(folder), "TERM": "dumb"})
    # The marks are written in two parts, so that the echo of a line is not taken for what it prints.
    terminal.type("bindkey -e; autoload -U compinit; compinit -D; source script; print rea''dy\n")
    terminal.wait_for("ready")
    terminal.type(f"{line}\t\x01print -r -- 'li''ne: \x05'; exit\n")
    terminal.wait_for("line: ")
    assert terminal.end() == 0
    return terminal.seen.rpartition("line: ")[2].split("\r")[0].split()[-1:]


def test_commands_are_completed(shell: tuple[str, Path]) -> None:
    assert completed(shell, "kafka-quotas vali") == ["validate"]
    if shell[0].endswith("fish"):
        assert completed(shell, "kafka-quotas ") == sorted(commands())


def test_values_of_an_option_are_completed(shell: tuple[str, Path]) -> None:
    assert completed(shell, "kafka-quotas validate --fail-on warn") == ["warning"]
