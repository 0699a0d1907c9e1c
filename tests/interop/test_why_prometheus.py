"""``why`` about a real broker that throttles a real client, by what a real Prometheus scraped of it."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import Login, SandboxSpec
from reconciler.formats.schema_check import load_schema
from tests.support import raw_quotas
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke
from tests.support.exporter_rules import RULES
from tests.support.git_repository import GitRepository
from tests.support.jmx_exporter import exported_cluster
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.prometheus_server import Prometheus, ScrapeJob, prometheus
from tests.support.wire_client import WireClient, record_batch

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

ALICE = Login(name="alice", password="alice-secret")
PAIR = {"user": "alice", "client-id": "app"}
LIMIT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A burst that the broker throttled, when it was sent, and a repository whose manifests set the limit before."""

    server: Prometheus
    at: str
    throttle_ms: int
    repository: GitRepository


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incident]:
    """The example kafka-2_0_0 of the jmx_exporter; Prometheus scrapes each second until the rate has decayed."""
    folder = tmp_path_factory.mktemp("kafka")
    spec = SandboxSpec(users=(ALICE,), heap_mb=384)
    with exported_cluster(folder, rules=RULES["quota-labels"], spec=spec) as running:
        servers = running.sandbox.bootstrap_servers
        create_topic(servers, "orders")
        raw_quotas.alter(servers, {frozenset(PAIR.items()): {"producer_byte_rate": float(LIMIT)}})
        raw_quotas.settled(servers, brokers=(1,))
        job = ScrapeJob(name="kafka", ports={running.ports[1]: {"broker_id": "1"}}, interval_s=1)
        with prometheus(folder, [job]) as server:
            made = repository(folder / "repository", server, servers)
            committed = int(made.git("log", "-1", "--format=%ct"))
            wait_until(lambda: server.value("up") and time.time() > committed + 1, within_s=60)
            with WireClient(running.sandbox.sasl_bootstrap_servers or "", ALICE, "app") as client:
                at = datetime.datetime.now(datetime.UTC).isoformat()
                _, throttle_ms = client.produce("orders", record_batch(400_000))
            rate = 'kafka_server_quota_byte_rate{resource="Produce"}'
            wait_until(lambda: (server.value(rate) or 0) > 1.2 * LIMIT, within_s=60)
            wait_until(lambda: (server.value(rate) or 0) < LIMIT, within_s=60)
            yield Incident(server=server, at=at, throttle_ms=throttle_ms, repository=made)


def repository(folder: Path, server: Prometheus, bootstrap_servers: str) -> GitRepository:
    """Manifests that name the server and set the limit."""
    made = GitRepository(folder)
    traffic = {"prometheus": f"http://127.0.0.1:{server.port}", "match": ['job="kafka"']}
    made.write("cluster.yaml", cluster(traffic=traffic, connection={"bootstrapServers": [bootstrap_servers]}))
    made.write("team.yaml", quotas((PAIR, {"producer_byte_rate": LIMIT}), owner="team-orders"))
    made.commit("Limit the app of alice")
    return made


def why(incident: Incident, store: Path, *options: str) -> Done:
    command = (
        "why",
        ".",
        "--name",
        "user=alice",
        "--name",
        "client-id=app",
        "--at",
        incident.at,
        "--traffic-store",
        str(store),
        *options,
    )
    return invoke(*command, cwd=incident.repository.folder)


def test_the_server_of_the_manifest_proves_the_throttle_its_limit_and_its_commit(incident: Incident, tmp_path: Path) -> None:
    assert incident.throttle_ms > 5_000
    done = why(incident, tmp_path, "--format", "json", "--detailed-exitcode")
    assert done.code == 2, done.err
    report = done.json()
    Draft202012Validator(load_schema("why")).validate(report)
    assert report["answer"] == "throttled"
    begin = datetime.datetime.fromisoformat(report["incident"]["begin"])
    assert 0 <= (begin - datetime.datetime.fromisoformat(incident.at)).total_seconds() < 5
    (cause,) = [group for group in report["groups"] if group["cause"]]
    assert (cause["bucket"], cause["limit"], cause["broker"]) == (PAIR, LIMIT, 1)
    assert cause["peak"] > 1.2 * LIMIT
    assert cause["recommended"] > cause["peak"], "a margin for what samples do not see"
    assert cause["origin"]["subject"] == "Limit the app of alice"
    unknown = " ".join(one["what"] for one in report["missing"])
    assert "how long each request was throttled" in unknown
    assert "who filled the quota group" in unknown


def test_the_text_names_the_server_and_what_samples_cannot_show(incident: Incident, tmp_path: Path) -> None:
    text = why(incident, tmp_path).out
    assert text.startswith("user=alice client-id=app was throttled around ")
    assert f"Traffic: samples of http://127.0.0.1:{incident.server.port}, from " in text
    assert "not known from samples. Recommended:" in " ".join(text.split())
    assert "requests" not in text.partition("filled by")[2].partition("What this rests on")[0]
    assert ".." not in text.replace("../", "")


def test_a_server_that_is_gone_leaves_the_limits_of_that_time(incident: Incident, tmp_path: Path) -> None:
    done = why(incident, tmp_path / "other", "--traffic", f"prometheus+http://127.0.0.1:{refusing_port()}", "--format", "json")
    assert done.code == 1
    report = done.json()
    assert (report["answer"], report["limits"]["producer_byte_rate"]["value"]) == ("unknown", LIMIT)
    assert "the samples of Prometheus cannot be read" in report["missing"][0]["because"]
