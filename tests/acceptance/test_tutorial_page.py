"""The commands that docs/tutorial.md shows are executed in their order, and print what the page says they print."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from reconciler.sandbox.spec import Sandbox
from tests.support.command import Done, environment, run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
SHOWN = [
    (limit, command, printed)
    for limit, block in re.findall(r"(?:<!-- backtest: (\w+) -->\n)?```console\n(.*?)```", PAGE, re.DOTALL)
    for command, printed in re.findall(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |\Z)", block, re.DOTALL | re.MULTILINE)
]
"""The limit that the page tells the reader to write first (or nothing), the command, and its output."""
EXIT_CODES = {"Refused": 3, "Drift": 2}


def as_on_the_page(printed: str, sandbox: Sandbox) -> str:
    """What differs from run to run, taken out; both sides go through here."""
    printed = printed.replace(sandbox.cluster_id, "lu69iAKIJEwaUOPC1DZgJg")
    printed = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "THEN", printed)
    printed = re.sub(r" in [0-9.]+ s, verified", " in SECONDS, verified", printed)
    printed = re.sub(r"baseline HEAD \([0-9a-f]{12}\)", "baseline HEAD", printed)
    return re.sub(r"sha256:[0-9a-f]{64}", "sha256", printed)


def execute(command: str, sandbox: Sandbox, folder: Path) -> Done:
    program, *arguments = shlex.split(command.replace("b1:9092", sandbox.bootstrap_servers).replace("$CHECKOUT", str(ROOT)))
    if program == "echo":
        text, append, path = arguments
        assert append == ">>"
        with (folder / path).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return Done(code=0, out="", err="")
    if program == "git":
        subprocess.run(
            ["git", "-c", "user.name=reader", "-c", "user.email=reader@example.com", *arguments], cwd=folder, check=True
        )
        return Done(code=0, out="", err="")
    assert program == "kafka-quotas"
    return run(*arguments, cwd=folder, env=environment())


@pytest.mark.kafka
@pytest.mark.spark
def test_every_command_prints_what_the_page_says(tmp_path: Path, clean_kafka: Sandbox) -> None:
    (manifest,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for limit, command, printed in SHOWN:
        if " sandbox " in command or command.startswith("export "):
            continue  # the tests have their own broker, and know the checkout
        if limit:
            (tmp_path / "quotas" / "team-bob.yaml").write_text(manifest.replace("10KiB", limit))
        elif "validate" in command:
            (tmp_path / "quotas" / "team-bob.yaml").write_text(manifest)
        done = execute(command, clean_kafka, tmp_path)
        real, shown = as_on_the_page(done.out, clean_kafka), as_on_the_page(printed, clean_kafka)
        if limit:
            assert [line for line in shown.splitlines() if line not in real.splitlines()] == []
        else:
            assert real == shown, f"{command}: {done.err}"
        assert done.code == next((code for word, code in EXIT_CODES.items() if printed.startswith(word)), 0), command


def test_all_commands_of_the_page_are_found() -> None:
    assert len(SHOWN) == PAGE.count("\n$ ") == 24
    assert [limit for limit, _, _ in SHOWN if limit] == ["10KiB", "470KiB"]
