"""``notifications`` of a Cluster manifest: what ``drift``, ``apply`` and ``run`` send. A webhook never changes their result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import user
from tests.support import raw_quotas
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.schemas import valid
from tests.support.webhook_server import SECRET, WebhookServer, webhook_server

RATE = "producer_byte_rate"
HOOKS = [
    {"name": "ops", "url": {"env": "QUOTAS_WEBHOOK"}},
    {"name": "chat", "format": "slack", "url": {"file": "secret"}, "events": ["failed"]},
]


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        yield server


def write(folder: Path, hook: WebhookServer | None, rate: int = 2_000_000, **spec: object) -> None:
    (folder / "cluster.yaml").write_text(cluster("prod", notifications=HOOKS, **{"prune": "never", **spec}), encoding="utf-8")
    (folder / "quotas.yaml").write_text(quotas(({"user": "a"}, {RATE: rate}), ({"user": "b"}, {RATE: rate})), encoding="utf-8")
    if hook is not None:
        (folder / "secret").write_text(hook.url, encoding="utf-8")


def call(folder: Path, hook: WebhookServer | None, *arguments: str) -> Done:
    done = invoke(*arguments, cwd=folder, env={"QUOTAS_WEBHOOK": hook.url} if hook else {})
    assert SECRET not in done.out + done.err
    return done


def test_drift_is_sent_with_its_entities_and_no_drift_is_not(tmp_path, server):
    write(tmp_path, server)
    (tmp_path / "now.json").write_text(snapshot({user("a"): {RATE: 1.0}, user("b"): {RATE: 2_000_000.0}}))
    (tmp_path / "same.json").write_text(snapshot({user("a"): {RATE: 2_000_000.0}, user("b"): {RATE: 2_000_000.0}}))

    assert call(tmp_path, server, "drift", ".", "--current", "same.json").code == 0
    assert server.bodies == []
    drifted = call(tmp_path, server, "drift", ".", "--current", "now.json", "--detailed-exitcode")

    assert (drifted.code, "warning: webhook" in drifted.err) == (2, False)
    (body,) = server.bodies
    valid(body, "notification")
    assert (body["event"], body["command"], body["entities"], body["counts"]) == (
        "drift",
        "drift",
        [{"user": "a"}],
        {"differs": 1},
    )


@pytest.mark.parametrize("status", [200, 500])
def test_a_cluster_that_does_not_answer_is_a_failure_for_every_webhook_that_wants_it(tmp_path, server, status):
    write(tmp_path, server)
    server.status = status

    done = call(tmp_path, server, "drift", ".", "--bootstrap-server", f"127.0.0.1:{refusing_port()}")

    assert done.code == 1
    document = next(body for body in server.bodies if "event" in body)
    message = next(body for body in server.bodies if "blocks" in body)
    valid(document, "notification")
    assert (document["event"], document["reason"]) == ("failed", "unreachable")
    assert "drift failed: no Kafka broker can be reached" in message["text"]
    assert done.err.count("warning: webhook") == (0 if status == 200 else 2)
    assert len(server.requests) == 2, "and none is sent again"


def test_a_plain_address_in_a_manifest_is_an_error_that_does_not_repeat_it(tmp_path):
    (tmp_path / "cluster.yaml").write_text(cluster("prod", notifications=[{"name": "ops", "url": f"https://h/{SECRET}"}]))
    done = invoke("validate", ".", cwd=tmp_path)
    assert done.code == 1
    assert "notifications" in done.out or "url" in done.out


@pytest.mark.kafka
def test_apply_sends_what_it_wrote_once_and_a_hanging_webhook_does_not_fail_it(tmp_path, server, clean_kafka):
    write(tmp_path, server)
    apply = ("apply", ".", "--bootstrap-server", clean_kafka.bootstrap_servers, "--auto-approve")

    assert call(tmp_path, server, *apply, "--validate-only").code == 0
    assert server.bodies == []
    assert call(tmp_path, server, *apply).code == 0
    assert call(tmp_path, server, *apply).code == 0
    (body,) = server.bodies
    valid(body, "notification")
    assert (body["event"], body["command"], body["counts"]) == ("applied", "apply", {"applied": 2})
    assert body["cluster"]["id"] == clean_kafka.cluster_id

    write(tmp_path, server, rate=3_000_000)
    server.hangs = True
    hanging = call(tmp_path, server, *apply, "--report", "report.json")
    assert hanging.code == 0
    assert "warning: webhook ops was not notified of applied" in hanging.err
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["result"] == "done"
    assert raw_quotas.settled(clean_kafka.bootstrap_servers)[frozenset({("user", "a")})] == {RATE: 3_000_000.0}

    server.hangs = False
    write(tmp_path, server, rate=1, protected=[{"user": "a"}])
    assert call(tmp_path, server, *apply).code == 3
    refused = next(body for body in server.bodies if body.get("event") == "failed")
    valid(refused, "notification")
    assert (refused["reason"], "protected-entity" in refused["summary"]) == ("guard", True)
