"""A broker throttles a real client; ``why`` explains it from the broker's own log and quotas, as the client saw it."""

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
from tests.support.polling import wait_until
from tests.support.wire_client import WireClient, record_batch

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.kafka

LIMIT = 60_000.0
LATE_S = 0.5
"""So long after the answer, on a slow machine, the broker may write the line of a request."""
SIZES = (200_000, 200_000, 300_000, 150_000, 100_000, 250_000)


@pytest.mark.large
def test_begin_end_and_amount_are_those_that_the_client_saw(clean_kafka: Sandbox, tmp_path: Path) -> None:
    servers, log = clean_kafka.bootstrap_servers, clean_kafka.nodes[0].request_log_file
    assert clean_kafka.sasl_bootstrap_servers is not None
    assert log is not None
    topic, client_id = (f"why-{uuid.uuid4().hex[:8]}" for _ in range(2))
    create_topic(servers, topic)
    raw_quotas.alter(servers, {frozenset({("user", "alice")}): {"producer_byte_rate": LIMIT}})
    wait_until(lambda: raw_quotas.describe(servers))
    batches = {size: record_batch(size) for size in set(SIZES)}
    begun = time.time()
    seen: list[tuple[float, float, int, int]] = []
    for size in SIZES:
        # Another connection for each request, because a throttled one is not read from.
        with WireClient(clean_kafka.sasl_bootstrap_servers, clean_kafka.user("alice"), client_id) as client:
            sent = time.time()
            amount, throttle_ms = client.produce(topic, batches[size])
            seen.append((sent, time.time(), amount, throttle_ms))
    wait_until(lambda: log.read_text("utf-8", errors="replace").count(f'"clientId":"{client_id}"') >= len(SIZES))
    since = datetime.datetime.fromtimestamp(begun - 1, tz=datetime.UTC).isoformat()

    done = invoke(
        "why", "--name", f"client-id={client_id}", "--since", since, "--traffic", f"1={log}", "--bootstrap-server", servers,
        "--format", "json",
        cwd=tmp_path,
    )  # fmt: skip

    assert done.code == 0, done.err
    report = done.json()
    throttled = [one for one in seen if one[3] > 0]
    assert len(throttled) >= 3
    assert report["answer"] == "throttled"
    assert report["recorded"]["requests"] == len(throttled)
    assert report["recorded"]["longest_ms"] == max(ms for _, _, _, ms in throttled)
    assert report["recorded"]["sum_ms"] == sum(ms for _, _, _, ms in throttled)
    begin, end = (datetime.datetime.fromisoformat(report["incident"][name]).timestamp() for name in ("begin", "end"))
    assert throttled[0][0] - 0.01 <= begin <= throttled[0][1] + LATE_S
    ends = [(sent + ms / 1000, answered + ms / 1000) for sent, answered, _, ms in throttled]
    assert max(low for low, _ in ends) - 0.01 <= end <= max(high for _, high in ends) + LATE_S
    cause = report["groups"][0]
    assert (cause["bucket"], cause["limit"], cause["cause"]) == ({"user": "alice"}, LIMIT, True)
    assert cause["members"][0]["client_id"] == client_id
    # The largest sampled rate has all that was sent, in a window of 10 s to 12 s.
    total = sum(amount for _, _, amount, _ in seen)
    assert total / 12 <= cause["peak"] <= total / 10 * 1.01
    assert cause["would_pass"] >= cause["peak"]
