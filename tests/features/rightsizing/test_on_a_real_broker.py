"""A broker throttles a client. The pull request with a better limit is planned, merged and applied. The client then passes."""

from __future__ import annotations

import datetime
import time
import uuid
from pathlib import Path

import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.forge import Forge
from tests.support.github_server import REPOSITORY, TOKEN, github_server
from tests.support.manifests import cluster, quotas
from tests.support.markdown_views import by_github
from tests.support.polling import wait_until
from tests.support.wire_client import WireClient, record_batch

pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.kafka, pytest.mark.large]

SIZES = (200_000, 200_000, 300_000, 150_000, 100_000, 250_000)
WINDOW_S = 12.0
"""After this time without requests, nothing that the broker counted is left in its rate."""


TRAFFIC = "refs/kafka-quotas/traffic/prod"
BRANCH = "refs/heads/kafka-quotas/rightsize/prod/no-owner"
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def lines_of(log: Path, client_id: str) -> list[str]:
    """The lines of the broker's request log about this client."""
    lines = log.read_text("utf-8", errors="replace").splitlines(keepends=True)
    return [line for line in lines if f'"clientId":"{client_id}"' in line]


def send(kafka: Sandbox, topic: str, client_id: str) -> list[int]:
    """The throttle times of the same requests, each on a connection of its own: a throttled one is not read from."""
    assert kafka.sasl_bootstrap_servers is not None
    seen = []
    for size in SIZES:
        with WireClient(kafka.sasl_bootstrap_servers, kafka.user("alice"), client_id) as client:
            seen.append(client.produce(topic, record_batch(size))[1])
    return seen


def test_a_throttled_client_passes_after_the_merge_of_the_request_that_proposes_its_limit(
    clean_kafka: Sandbox, tmp_path: Path
) -> None:
    servers, log = clean_kafka.bootstrap_servers, clean_kafka.nodes[0].request_log_file
    assert log is not None
    topic, client_id = (f"rightsize-{uuid.uuid4().hex[:8]}" for _ in range(2))
    create_topic(servers, topic)
    with github_server() as github:
        forge = Forge(tmp_path, github)
        github.pulls = []
        settings = {"connection": {"bootstrapServers": servers.split(",")}, "backtest": {"history": {"hours": 0}}}
        forge.work.write("prod.yaml", cluster(prune="never", traffic={"source": TRAFFIC}, **settings))
        forge.work.write("alice.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "60KB"})))
        forge.work.commit(at=LONG_AGO)
        pushed = forge.push()
        assert invoke("apply", ".", "--auto-approve", cwd=forge.work.folder).code == 0
        assert invoke("export", ".", "--snapshot", str(tmp_path / "now.json"), cwd=forge.work.folder).code == 0
        forge.store("refs/kafka-quotas/snapshot/prod", {"snapshot.json": (tmp_path / "now.json").read_text("utf-8")})
        assert any(send(clean_kafka, topic, client_id))
        sent = time.monotonic()
        wait_until(lambda: len(lines_of(log, client_id)) >= len(SIZES))
        forge.store(TRAFFIC, {"kafka-request.log": "".join(lines_of(log, client_id))})

        forge.work.git("fetch", "-q", "origin", f"{TRAFFIC}:{TRAFFIC}")
        api = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": github.url, "GITHUB_TOKEN": TOKEN}
        done = invoke("rightsize", ".", "--write", "requests", "--format", "json", cwd=forge.work.folder, env=api)
        assert done.code == 0, done.err
        (quota,) = done.json()["quotas"]
        assert (quota["verdict"], quota["limit"], quota["backtest"]["verdict"] != "throttled") == ("raise", 60_000, True)
        (request,) = github.pulls
        assert request["title"] == "Rightsize prod: 1 limit"

        forge.work.git("fetch", "-q", "origin", BRANCH)
        forge.work.git("checkout", "-q", "--detach", "FETCH_HEAD")
        (planned,) = forge.on_pull_request(*forge.propose())["plan"]
        assert planned.result == "success", planned.log
        (comment,) = github.comments.values()
        text = by_github(comment["body"]).text()
        assert "Kafka quotas for prod" in text
        assert "alice" in text
        (applied,) = forge.run("apply.yml", forge.pushed(forge.merge(), pushed))["apply"]
        assert applied.result == "success", applied.log
    wait_until(lambda: {"producer_byte_rate": quota["value"]} in raw_quotas.describe(servers).values())
    wait_until(lambda: time.monotonic() > sent + WINDOW_S)
    assert send(clean_kafka, topic, client_id) == [0] * len(SIZES)
