"""``apply --all-clusters`` on a real broker: several Cluster manifests share it, each with a scope of its own."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke, running
from tests.support.manifests import cluster, quotas, repository
from tests.support.polling import wait_until
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

RATE = "producer_byte_rate"
STAGES = {"s1": "staging", "s2": "staging", "c1": "canary", "p1": "prod", "p2": "prod"}


class Fleet:
    """A cluster for each name: its entities begin with that name."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder = folder
        self.server = sandbox.bootstrap_servers
        self.id = invoke("export", "--bootstrap-server", self.server, "--snapshot", "now.json", cwd=folder)
        self.cluster_id = json.loads((folder / "now.json").read_text())["cluster"]["id"]
        (folder / "now.json").unlink()
        owners = {team: {"paths": [f"{team}/**"]} for team in ("a", "b")}
        self.write(
            "kafka-quotas.yaml", repository(owners=owners, clusterPaths=["clusters/*"], stages=["staging", "canary", "prod"])
        )
        for name in STAGES:
            self.cluster(name)
            for team in owners:
                self.quotas(team, name, 1000)

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def cluster(self, name: str, server: str | None = None, **spec: object) -> None:
        labels = f'metadata: {{name: "{name}", labels: {{stage: {STAGES[name]}}}}}'
        given = {"connection": {"bootstrapServers": [server or self.server]}, **spec}
        if server is None:
            given["clusterId"] = self.cluster_id
        text = cluster(name, scope={"include": [{"user": {"prefix": f"{name}-"}}]}, **given)
        self.write(f"clusters/{name}.yaml", text.replace(f'metadata: {{name: "{name}"}}', labels))

    def quotas(self, team: str, name: str, rate: float) -> None:
        self.write(f"{team}/{name}.yaml", quotas(({"user": f"{name}-{team}"}, {RATE: rate}), owner=team, clusters=[name]))

    def run(self, *arguments: str) -> Done:
        return invoke(*arguments, cwd=self.folder)

    def apply(self, *arguments: str) -> Done:
        return self.run("apply", "--all-clusters", "--auto-approve", *arguments)

    def live(self) -> dict[str | None, float]:
        return {dict(entity)["user"]: values[RATE] for entity, values in raw_quotas.settled(self.server).items()}


@pytest.fixture
def fleet(tmp_path: Path, clean_kafka: Sandbox) -> Fleet:
    return Fleet(tmp_path, clean_kafka)


def everywhere(value: float) -> dict[str, float]:
    return {f"{name}-{team}": value for name in STAGES for team in ("a", "b")}


def test_all_clusters_are_written_stage_by_stage(fleet: Fleet) -> None:
    done = fleet.apply("--report", "reports", "--audit", "audit.jsonl")
    assert (done.code, fleet.live()) == (0, everywhere(1000))
    order = [done.out.index(f"Cluster {name} (stage {stage})") for name, stage in STAGES.items()]
    assert max(order[:2]) < order[2] < min(order[3:])
    for name in STAGES:
        findings, _, _ = done.out.partition(f"Cluster {name} (stage")[2].partition("Applied 2 changes")
        assert findings.count("[byte-rate-small]") == 2
    assert "5 clusters: 5 applied, 0 failed, 0 not begun." in done.out
    assert sorted(path.name for path in (fleet.folder / "reports").iterdir()) == sorted(f"{name}.json" for name in STAGES)
    assert len((fleet.folder / "audit.jsonl").read_text().splitlines()) == 5
    again = valid(fleet.apply("--format", "json").json(), "apply-reports")
    assert [report["result"] for report in again["clusters"]] == ["nothing_to_do"] * 5


def test_a_failure_stops_later_stages_unless_the_run_keeps_going(fleet: Fleet) -> None:
    fleet.cluster("c1", f"127.0.0.1:{refusing_port()}")
    done = fleet.apply()
    assert done.code == 4
    assert set(fleet.live()) == {"s1-a", "s1-b", "s2-a", "s2-b"}
    assert "not begun: cluster c1 failed before" in done.out
    assert "2 applied, 1 failed, 2 not begun." in done.out
    assert fleet.apply("--keep-going").code == 4
    assert set(fleet.live()) == {name for name in everywhere(0) if not name.startswith("c1")}


def test_a_run_over_all_clusters_needs_an_approval_and_stages_that_exist(fleet: Fleet) -> None:
    assert fleet.run("apply", "--all-clusters").code == 3
    assert fleet.apply("--plan", "plan.json").code == 64
    fleet.write("kafka-quotas.yaml", repository(stages=["staging", "prod"], clusterPaths=["clusters/*"]))
    unknown = fleet.apply()
    assert unknown.code == 64
    assert "1 cluster of no stage: c1" in unknown.err
    assert fleet.live() == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_keeps_what_is_written_and_begins_no_other_cluster(fleet: Fleet, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fleet.cluster("s1", f"127.0.0.1:{silent.getsockname()[1]}")
        command = ("apply", "--all-clusters", "--auto-approve", "--report", "reports", "--audit", "audit.jsonl")
        with running(*command, cwd=fleet.folder) as process:
            wait_until((fleet.folder / "reports/s2.json").exists)
            process.send_signal(number)
            out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (4, "kafka-quotas: interrupted\n")
    assert set(fleet.live()) == {"s2-a", "s2-b"}
    assert "5 clusters: 1 applied, 1 failed, 3 not begun." in out
    assert "not begun: the run was stopped before" in out
    assert {json.loads(line)["result"] for line in (fleet.folder / "audit.jsonl").read_text().splitlines()} == {"done", "failed"}
