"""The commands that docs/monitor.md shows are executed, and print what the page says they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.builders import DEFAULT, client, user
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.pages import part

PAGE = part("monitor", "Report page")
SHOWN = re.findall(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |^```)", PAGE, re.DOTALL | re.MULTILINE)
LIVE = {
    user("alice"): {"producer_byte_rate": 1.0},
    user("bob"): {"producer_byte_rate": 2.0},
    client(DEFAULT): {"request_percentage": 50.0},
}


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "prod.json").write_text(snapshot(LIVE))
    for folder, servers in (("quotas", ["127.0.0.1:9092"]), ("offline", ["127.0.0.1:1"])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "prod.yaml").write_text(cluster(connection={"bootstrapServers": servers}))
    entries = (({"user": name}, {"producer_byte_rate": 1}) for name in ("alice", "bob"))
    (tmp_path / "quotas" / "quotas.yaml").write_text(quotas(*entries))
    assert len(SHOWN) == PAGE.count("\n$ ") == 2
    for command, printed in SHOWN:
        program, *arguments = shlex.split(command)
        assert program == "kafka-quotas"
        done = invoke(*arguments, cwd=tmp_path)
        assert done.out == printed, command
        assert done.code == (1 if "offline" in command else 0)
        assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
