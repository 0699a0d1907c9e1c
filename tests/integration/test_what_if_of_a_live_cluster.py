"""``backtest --set`` takes the current quotas from a running broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.traffic.conftest import RECORDINGS

pytestmark = pytest.mark.kafka

LOG = RECORDINGS / "kafka-4.3.1" / "kafka-request.log.gz"


def test_settings_change_the_quotas_of_a_live_cluster(clean_kafka: Sandbox, tmp_path: Path) -> None:
    raw_quotas.alter(
        clean_kafka.bootstrap_servers,
        {
            frozenset({("user", "alice")}): {"producer_byte_rate": 307200.0, "consumer_byte_rate": 204800.0},
            frozenset({("user", "bob")}): {"producer_byte_rate": 1024.0},
        },
    )
    raw_quotas.settled(clean_kafka.bootstrap_servers)
    setting = "user=alice:producer_byte_rate=100KiB"
    servers = ("--bootstrap-server", clean_kafka.bootstrap_servers)
    done = invoke("backtest", "--set", setting, "--traffic", f"3={LOG}", *servers, "--format", "json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    rows = {(row["bucket"]["user"], row["key"]): row for row in done.json()["verdicts"]}
    limits = {name: (row["limit_before"], row["limit_after"]) for name, row in rows.items() if row["limit_after"] is not None}
    assert limits == {
        ("alice", "producer_byte_rate"): (307200, 102400),
        ("alice", "consumer_byte_rate"): (204800, 204800),
        ("bob", "producer_byte_rate"): (1024, 1024),
    }
    assert [row["bucket"]["user"] for row in done.json()["verdicts"] if row["changed"]] == ["alice"]
