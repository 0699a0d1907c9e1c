"""The commands that docs/emergency.md shows are executed as they stand, in their order, against a real broker."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import config_command, raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.pages import before, part

pytestmark = pytest.mark.kafka

PAGE = before("emergency", "Roll back")
SECTIONS = {
    title: re.findall(
        r"^(?:kafka-quotas|kafka-configs) .*$",
        "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " "),
        re.MULTILINE,
    )
    for title, text in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}
MIB = 1024.0**2
PAYMENTS, EVERYBODY = frozenset({("user", "payments-api")}), frozenset({("user", None)})
WRITER = frozenset({("user", "payments-api"), ("client-id", "writer-1")})
State = Mapping[raw_quotas.RawEntity, Mapping[str, float]]


class Night:
    """A cluster whose last run lowered a limit by mistake, and gave everybody one."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder = folder
        self.sandbox = sandbox
        (folder / "admin.properties").write_text("security.protocol=PLAINTEXT\n")
        (folder / "quotas").mkdir()
        self.declare("20MiB")
        assert self.apply().code == 0
        self.declare("1MiB", everybody="5MiB")
        assert self.apply("--accept", "large-reduction", "--accept", "default-entity").code == 0
        self.seen = ""

    def declare(self, rate: str, *, everybody: str | None = None) -> None:
        everyone = [({"user": {"default": True}}, {"producer_byte_rate": everybody})] if everybody else []
        text = quotas(({"user": "payments-api"}, {"producer_byte_rate": rate}), *everyone)
        (self.folder / "quotas" / "payments.yaml").write_text(text)

    def apply(self, *options: str) -> Done:
        server = ("--bootstrap-server", self.sandbox.bootstrap_servers)
        return invoke("apply", "quotas", *server, "--auto-approve", "--report", "run.json", *options, cwd=self.folder)

    def section(self, title: str) -> None:
        """Execute its commands; every one of them must succeed."""
        self.seen = ""
        (found,) = (commands for name, commands in SECTIONS.items() if title in name)
        assert found
        for command in found:
            program, *arguments = shlex.split(command.replace("b1:9092", self.sandbox.bootstrap_servers))
            if program == "kafka-quotas":
                done = invoke(*arguments, cwd=self.folder)
                # Looking first may show a guard that trips.
                assert done.code == 0 or ("--validate-only" in command and done.code == 3), f"{command}\n{done.out}{done.err}"
                self.seen += done.out
            else:
                arguments = [str(self.folder / one) if one == "admin.properties" else one for one in arguments]
                self.seen += config_command.run(self.sandbox, *arguments[2:])

    def live(self) -> State:
        return raw_quotas.describe(self.sandbox.bootstrap_servers)


@pytest.mark.large
def test_every_command_does_what_the_page_says(tmp_path: Path, clean_kafka: Sandbox) -> None:
    night = Night(tmp_path, clean_kafka)
    bad: State = {PAYMENTS: {"producer_byte_rate": MIB}, EVERYBODY: {"producer_byte_rate": 5 * MIB}}
    assert night.live() == bad

    night.section("Keep what is there")
    assert len(json.loads((tmp_path / "before.json").read_text())["entities"]) == 2
    assert "producer_byte_rate        1 MiB/s  level 3  user=payments-api" in night.seen
    assert night.live() == bad

    night.section("Undo the last run")
    assert night.live() == {PAYMENTS: {"producer_byte_rate": 20 * MIB}}
    assert invoke("revert", "back.json", "--help", cwd=tmp_path).code == 0

    night.section("Give one client more")
    assert night.live() == {PAYMENTS: {"producer_byte_rate": 50 * MIB}}

    raw_quotas.alter(clean_kafka.bootstrap_servers, {EVERYBODY: {"producer_byte_rate": 5 * MIB}})
    night.section("Take a limit away")
    assert night.live() == {}

    night.declare("20MiB")
    night.section("Apply from a checkout")
    assert night.live() == {PAYMENTS: {"producer_byte_rate": 20 * MIB}}
    assert json.loads((tmp_path / "runs.jsonl").read_text())["result"] == "done"

    night.section("Before you go back to bed")
    assert "1 in sync" in night.seen

    raw_quotas.alter(clean_kafka.bootstrap_servers, {EVERYBODY: {"producer_byte_rate": 5 * MIB}})
    night.section("Only Kafka's own tools")
    assert "payments-api" in night.seen
    assert night.live() == {PAYMENTS: {"producer_byte_rate": 50 * MIB}, WRITER: {"consumer_byte_rate": 50 * MIB}}


def test_the_freeze_that_the_page_shows_keeps_the_pipeline_away(tmp_path: Path, clean_kafka: Sandbox) -> None:
    night = Night(tmp_path, clean_kafka)
    (frozen,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "quotas" / "cluster.yaml").write_text(cluster(prune="never") + frozen)
    night.declare("30MiB", everybody="5MiB")
    refused = night.apply("--format", "json")
    assert (refused.code, refused.json()["failure_reason"]) == (3, "frozen")


def test_every_section_with_commands_is_found() -> None:
    assert [bool(commands) for commands in SECTIONS.values()] == [True] * 7
    assert sum(map(len, SECTIONS.values())) == PAGE.count("\nkafka-quotas ") + PAGE.count("\nkafka-configs ") == 16


COMMANDS = re.findall(r"^\$ kafka-quotas (.*)$", part("emergency", "Roll back"), re.MULTILINE)


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
