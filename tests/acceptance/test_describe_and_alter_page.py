"""The commands that docs/describe-and-alter.md shows are executed in their order, and print what the page says they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.command import run
from tests.support.pages import page, shown_commands

SHOWN = shown_commands("describe-and-alter")
EXIT_CODES = {"Refused": 3, "kafka-quotas: there is no": 64, "kafka-quotas: --name": 64, "kafka-quotas: '": 64}


def as_on_the_page(printed: str, cluster_id: str) -> str:
    """What differs from run to run, as the page has it."""
    # CSV has line ends of its own, which a page cannot show.
    printed = printed.replace("\r\n", "\n").replace(cluster_id, "lu69iAKIJEwaUOPC1DZgJg")
    printed = re.sub(r"Applied 1 change in [0-9.]+ s,", "Applied 1 change in 0.1 s,", printed)
    printed = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "2026-11-21 17:00:00 UTC", printed)
    return re.sub(r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, printed)


@pytest.mark.large
@pytest.mark.kafka
def test_every_command_prints_what_the_page_says(tmp_path: Path, clean_kafka: Sandbox) -> None:
    (manifest,) = re.findall(r"```yaml\n(.*?)```", page("describe-and-alter"), re.DOTALL)
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "payments.yaml").write_text(manifest)
    for command, printed in SHOWN:
        program, *arguments = shlex.split(command.replace("b1:9092", clean_kafka.bootstrap_servers).replace("\\\n", ""))
        assert program == "kafka-quotas"
        done = run(*arguments, cwd=tmp_path)
        assert as_on_the_page(done.err + done.out, clean_kafka.cluster_id) == printed, command
        expected = next((code for words, code in EXIT_CODES.items() if printed.startswith(words)), 0)
        assert done.code == expected, command


def test_all_commands_of_the_page_are_found() -> None:
    assert len(SHOWN) == page("describe-and-alter").count("\n$ ") == 15
