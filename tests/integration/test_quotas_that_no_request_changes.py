"""A broker with quotas of the past, which no request can set or remove: plan names them, and apply does the rest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.broker_classes import with_records
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK compiles the agent that writes such records"),
]

PRODUCE, CONSUME, CONNECT = "producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"


def raw(**names: str | None) -> raw_quotas.RawEntity:
    return frozenset((kind.replace("_", "-"), name) for kind, name in names.items())


STAY = {
    raw(user=""): {PRODUCE: 1024.0},
    raw(client_id=""): {PRODUCE: 1024.0, "request_percentage": 5.0},
    raw(user="", client_id="app"): {CONSUME: 512.0},
    raw(user="alice", client_id=""): {CONSUME: 512.0},
    raw(user=None, client_id=""): {CONSUME: -1.0},
    raw(ip="no-such-host.invalid"): {CONNECT: 7.0},
    raw(user="mixed", ip="10.0.0.3"): {CONNECT: 3.0},
}
"""Kafka refuses each request about these, also a removal."""
GO = {
    raw(user="negative"): {CONSUME: -1.0},
    raw(user="zero"): {PRODUCE: 0.0},
    raw(user="misplaced"): {CONNECT: 3.0, PRODUCE: 5.0},
    raw(ip="10.0.0.9"): {PRODUCE: 9.0},
}
"""Nobody could set these today, and everybody can remove them."""
KEPT = {raw(user="odd"): {"strange_rate": 4.0}}
"""This tool leaves keys that it does not know."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    records = {**STAY, **GO, **KEPT, raw(user="keep"): {PRODUCE: 1048576.0}}
    with running(with_records(tmp_path_factory.mktemp("agent"), records)) as sandbox:
        yield sandbox


class Repository:
    def __init__(self, path: Path, server: str) -> None:
        self.path = path
        (path / "cluster.yaml").write_text(cluster(prune="always", connection={"bootstrapServers": [server]}))
        self.declare(({"user": "keep"}, {PRODUCE: "2MiB"}), ({"user": "new"}, {PRODUCE: "2MiB"}))

    def declare(self, *entries: tuple[dict[str, str], dict[str, str]]) -> None:
        (self.path / "quotas.yaml").write_text(quotas(*entries))

    def run(self, command: str, *arguments: str) -> Done:
        return invoke(command, *arguments, cwd=self.path)


def entity_of(names: raw_quotas.RawEntity) -> dict[str, str | None]:
    return dict(names)


def test_what_brokers_refuse_is_named_and_never_planned_and_the_rest_is_applied(broker: Sandbox, tmp_path: Path) -> None:
    repository = Repository(tmp_path, broker.bootstrap_servers)
    planned = repository.run("plan", "--format", "json", "--accept", "too-many-removals")
    document = planned.json()
    changed = [change["entity"] for change in document["changes"]]
    assert not [entity for entity in changed if entity in [entity_of(names) for names in STAY]]
    assert {change["entity"].get("user") for change in document["changes"]} >= {"keep", "new", "negative", "zero"}
    told = " ".join(one["message"] for one in document["findings"] if one["id"] == "unalterable-entity")
    reasons = ("such names", "such a name")
    for text in ('user=""', 'client-id=""', 'user="" client-id=app', "ip=no-such-host.invalid", "ip=10.0.0.3", *reasons):
        assert text in told, told
    drift = repository.run("drift")
    assert 'user="" client-id=app' in drift.out
    assert "added: " not in " ".join(line for line in drift.out.splitlines() if '""' in line)
    applied = repository.run("apply", "--auto-approve", "--accept", "too-many-removals")
    assert applied.code == 0, applied.out + applied.err
    assert "Kafka refuses each request about such names, also a removal" in applied.out + applied.err
    assert raw_quotas.settled(broker.bootstrap_servers) == {
        **STAY, **KEPT, raw(user="keep"): {PRODUCE: 2097152.0}, raw(user="new"): {PRODUCE: 2097152.0},
    }  # fmt: skip
    again = repository.run("plan", "--detailed-exitcode")
    assert again.code == 0, again.out
    assert repository.run("drift", "--detailed-exitcode").code == 0
    exported = repository.run("export", "--folder", "out", "--bootstrap-server", broker.bootstrap_servers)
    assert exported.code == 0, exported.err
    assert 'user="": the name of user is empty. Kafka refuses every change of it' in exported.err
    assert "by hand" not in exported.err
    assert repository.run("validate", "out").code == 0
