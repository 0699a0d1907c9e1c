"""A broker throttles a client. The proposed limit is applied, and the same requests are not throttled again."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.wire_client import WireClient, record_batch

pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.kafka, pytest.mark.large]

SIZES = (200_000, 200_000, 300_000, 150_000, 100_000, 250_000)
WINDOW_S = 12.0
"""After this time without requests, nothing that the broker counted is left in its rate."""


def send(kafka: Sandbox, topic: str, client_id: str) -> list[int]:
    """The throttle times of the same requests, each on a connection of its own: a throttled one is not read from."""
    assert kafka.sasl_bootstrap_servers is not None
    seen = []
    for size in SIZES:
        with WireClient(kafka.sasl_bootstrap_servers, kafka.user("alice"), client_id) as client:
            seen.append(client.produce(topic, record_batch(size))[1])
    return seen


def test_what_was_throttled_passes_under_the_limit_that_is_proposed(clean_kafka: Sandbox, tmp_path: Path) -> None:
    servers, log = clean_kafka.bootstrap_servers, clean_kafka.nodes[0].request_log_file
    assert log is not None
    topic, client_id = (f"rightsize-{uuid.uuid4().hex[:8]}" for _ in range(2))
    create_topic(servers, topic)
    (tmp_path / "prod.yaml").write_text(cluster(prune="never", connection={"bootstrapServers": servers.split(",")}))
    manifest = tmp_path / "quotas.yaml"
    manifest.write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "60KB"})))
    assert invoke("apply", ".", "--auto-approve", cwd=tmp_path).code == 0
    assert any(send(clean_kafka, topic, client_id))
    sent = time.monotonic()
    wait_until(lambda: log.read_text("utf-8", errors="replace").count(f'"clientId":"{client_id}"') >= len(SIZES))

    done = invoke("rightsize", ".", "--traffic", f"1={log}", "--write", "files", "--format", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    (quota,) = done.json()["quotas"]
    assert (quota["verdict"], quota["limit"], quota["backtest"]["verdict"] != "throttled") == ("raise", 60_000, True)
    applied = invoke("apply", ".", "--auto-approve", cwd=tmp_path)
    assert applied.code == 0, applied.out + applied.err
    wait_until(lambda: {"producer_byte_rate": quota["value"]} in raw_quotas.describe(servers).values())
    wait_until(lambda: time.monotonic() > sent + WINDOW_S)
    assert send(clean_kafka, topic, client_id) == [0] * len(SIZES)
