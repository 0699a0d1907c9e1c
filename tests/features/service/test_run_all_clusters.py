"""``kafka-quotas run --all-clusters``: one process for many clusters. Several Cluster manifests share one real broker."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.bad_servers import refusing_port
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas, repository
from tests.support.service_process import Running, running

RATE = "producer_byte_rate"
FAST = ("--all-clusters", "--apply", "--interval", "600")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def declare(folder: Path, name: str, server: str, *, rate: int = 1000, **spec: object) -> None:
    """A cluster whose entities begin with its name, and a quota there."""
    connection = {"bootstrapServers": [server]}
    scope = {"include": [{"user": {"prefix": f"{name}-"}}]}
    write(folder / f"clusters/{name}.yaml", cluster(name, scope=scope, connection=connection, **spec))
    write(folder / f"quotas/{name}.yaml", quotas(({"user": f"{name}-app"}, {RATE: rate}), clusters=[name]))


def live(server: str) -> dict[str | None, float]:
    return {dict(entity)["user"]: values[RATE] for entity, values in raw_quotas.settled(server).items()}


def results(service: Running, name: str) -> list[str]:
    return [row["result"] for row in service.events("pass") if row["cluster"] == name]


def metric(service: Running, name: str, **labels: str) -> float | None:
    wanted = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    rows = (row.rpartition(" ") for row in service.page("/metrics")[1].splitlines())
    return next((float(value) for sample, _, value in rows if sample == f"kafka_quotas_{name}{{{wanted}}}"), None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "work/kafka-quotas.yaml", repository(clusterPaths=["clusters/*"]))
    return tmp_path / "work"


@pytest.mark.kafka
def test_a_cluster_that_is_down_or_refused_does_not_stop_the_others(folder: Path, tmp_path: Path, clean_kafka: Sandbox) -> None:
    server = clean_kafka.bootstrap_servers
    for name in ("east", "west"):
        declare(folder, name, server, clusterId=clean_kafka.cluster_id)
    audit, reports = tmp_path / "audit.jsonl", tmp_path / "reports"
    reports.mkdir()
    declare(folder, "south", f"127.0.0.1:{refusing_port()}")
    with running(folder, tmp_path / "log", *FAST, "--audit", str(audit), "--report", str(reports)) as service:
        service.until(lambda: results(service, "south").count("cluster") >= 2)
        service.until(lambda: all("applied" in results(service, name) for name in ("east", "west")))
        assert live(server) == {"east-app": 1000, "west-app": 1000}

        # What each cluster did is in series of its own.
        assert metric(service, "passes_total", cluster="east", result="applied") == 1
        assert metric(service, "changes_total", cluster="west", action="create", status="applied") == 1
        assert (metric(service, "consecutive_failures", cluster="south") or 0) >= 2
        assert metric(service, "consecutive_failures", cluster="east") == 0
        assert service.page("/healthz")[0] == 200
        status, page = service.page("/readyz")
        assert (status, json.loads(page)["clusters"], list(json.loads(page)["failing"])) == (503, 3, ["south"])

        # A value that was changed by hand comes back on the one, while guards refuse the other's change.
        raw_quotas.alter(server, {frozenset({("user", "east-app")}): {RATE: 7.0}})
        raw_quotas.settled(server)
        write(folder / "quotas/west.yaml", quotas(({"user": "west-app"}, {RATE: 1}), clusters=["west"]))
        service.until(lambda: results(service, "west")[-1] == "refused")
        service.until(lambda: results(service, "east").count("applied") == 2)
        assert live(server) == {"east-app": 1000, "west-app": 1000}
        assert metric(service, "guard_tripped", cluster="west", guard="large-reduction") == 1

        # Broken manifests of all: one report of what is wrong, and nothing is written.
        write(folder / "quotas/east.yaml", "kind: [")
        service.until(lambda: results(service, "east")[-1] == results(service, "south")[-1] == "invalid")
        assert len({row["message"] for row in service.events("finding")}) == len(service.events("finding"))
        declare(folder, "east", server, clusterId=clean_kafka.cluster_id)
        write(folder / "quotas/west.yaml", quotas(({"user": "west-app"}, {RATE: 1000}), clusters=["west"]))
        service.until(lambda: results(service, "east")[-1] == results(service, "west")[-1] == "in_sync")

        # A new cluster gets a loop, and one that no manifest declares any more is left as it is.
        declare(folder, "north", server, clusterId=clean_kafka.cluster_id)
        service.until(lambda: "applied" in results(service, "north"))
        (folder / "clusters/west.yaml").unlink()
        (folder / "quotas/west.yaml").unlink()
        service.until(lambda: metric(service, "consecutive_failures", cluster="west") is None)
        assert live(server) == {"east-app": 1000, "west-app": 1000, "north-app": 1000}

        assert service.end(signal.SIGTERM) == 0
        (stopped,) = service.events("stopped")
        assert sum(stopped["last"].values()) == 3
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {line["cluster"]["name"] for line in lines} == {"east", "west", "north"}
    assert sorted(path.name for path in reports.iterdir()) == ["east.json", "north.json", "west.json"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cluster", "east"), "--all-clusters and --cluster exclude each other"),
        (("--apply", "--report", "nowhere"), "--report names a folder that exists"),
        ((), "--all-clusters needs a Cluster manifest"),
    ],
)
def test_options_that_cannot_work_end_it_at_once(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = invoke("run", str(folder), "--port", "0", "--all-clusters", *options, cwd=folder)
    assert done.code == 64
    assert message in done.err
