"""The commands of docs/emergency.md undo a run on a real broker, and undo that again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.pages import part

pytestmark = pytest.mark.kafka

PAGE = part("emergency", "Roll back")
COMMANDS = re.findall(r"^\$ kafka-quotas (.*)$", PAGE, re.MULTILINE)
MIB = 1024.0**2


def test_the_commands_roll_a_run_back_and_forth(tmp_path: Path, clean_kafka: Sandbox) -> None:
    folder = tmp_path / "quotas"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(cluster("prod", connection={"bootstrapServers": [clean_kafka.bootstrap_servers]}))
    live = []
    for rate in ("20MiB", "30MiB"):
        (folder / "alice.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": rate})))
        done = invoke("apply", "quotas", "--auto-approve", "--report", "run.json", cwd=tmp_path)
        assert done.code == 0, done.err
    for command in COMMANDS:
        approved = () if "--validate-only" in command else ("--auto-approve",)
        done = invoke(*shlex.split(command), *approved, cwd=tmp_path)
        assert done.code == 0, f"{command}\n{done.out}{done.err}"
        assert "producer_byte_rate" in done.out
        (found,) = raw_quotas.describe(clean_kafka.bootstrap_servers).values()
        live.append((command.split()[1], found["producer_byte_rate"] / MIB))
    assert live == [("run.json", 30), ("run.json", 20), ("back.json", 30)]
