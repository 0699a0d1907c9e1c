"""The commands that docs/resolve.md shows are executed in their order, and print what the page says they print."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.builders import DEFAULT, client, ip, pair, user
from tests.support import manifests
from tests.support.command import invoke
from tests.support.pages import page, shown_commands

SHOWN = shown_commands("resolve")
MIB = 1024.0**2
LIVE = {
    user(DEFAULT): {"producer_byte_rate": 5 * MIB},
    user("payments-api"): {"producer_byte_rate": 20 * MIB, "consumer_byte_rate": 40 * MIB},
    pair("payments-api", "settlement"): {"producer_byte_rate": 50 * MIB},
    client("mirror"): {"producer_byte_rate": 30 * MIB},
    client(DEFAULT): {"request_percentage": 50.0},
    ip(DEFAULT): {"connection_creation_rate": 200.0},
    ip("10.0.0.7"): {"connection_creation_rate": 50.0},
}


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "prod.json").write_text(manifests.snapshot(LIVE, "lu69iAKIJEwaUOPC1DZgJg"))
    assert len(SHOWN) == page("resolve").count("\n$ ") == 4
    for command, printed in SHOWN:
        program, *arguments = shlex.split(command.replace("\\\n", ""))
        assert program == "kafka-quotas"
        done = invoke(*arguments, cwd=tmp_path)
        assert done.err + done.out == printed, command
        assert done.code == (64 if "usr=" in command else 0), command
