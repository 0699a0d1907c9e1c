"""Totals over three real brokers without the plugin, measured: leaders balanced and skewed, even clients and free ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.features.sandbox.cluster import running
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.measured_totals import BALANCED, KEY, MEASURED, SKEWED, TOTAL, measured_rates, placed, senders_of, table
from tests.support.partition_senders import create_placed_topic

pytestmark = [pytest.mark.kafka, pytest.mark.large]

EVEN_TOTAL = {"clusterTotal": TOTAL}
BY_LEADERS = {"proportional": TOTAL, "topics": ["skewed"]}
THIRD, HALF = TOTAL / 3, TOTAL / 2
CASES: Mapping[str, tuple[Mapping[str, object], str, bool, float, tuple[float, float, float]]] = {
    # What brokers enforce, and what clients reach on brokers 1, 2 and 3.
    "balanced-even": (EVEN_TOTAL, "balanced", True, THIRD, (THIRD, THIRD, THIRD)),
    "balanced-free": (EVEN_TOTAL, "balanced", False, THIRD, (THIRD, THIRD, THIRD)),
    "skewed-even": (EVEN_TOTAL, "skewed", True, THIRD, (THIRD, THIRD * 2 / 3, THIRD / 3)),
    "skewed-free": (EVEN_TOTAL, "skewed", False, THIRD, (THIRD, THIRD, THIRD)),
    "leaders-even": (BY_LEADERS, "skewed", True, HALF, (HALF, HALF * 2 / 3, HALF / 3)),
    "leaders-free": (BY_LEADERS, "skewed", False, HALF, (HALF, HALF, HALF)),
}
LEADERS = {"balanced": BALANCED, "skewed": SKEWED}


def test_each_broker_enforces_its_part_and_skewed_leaders_miss_the_total_as_reported(tmp_path: Path) -> None:
    with running(MEASURED) as sandbox:
        servers = sandbox.bootstrap_servers
        create_placed_topic(servers, "skewed", placed(SKEWED))
        (tmp_path / "prod.yaml").write_text(cluster(connection={"bootstrapServers": servers.split(",")}))
        entries = [({"client-id": name}, {KEY: value}) for name, (value, *_) in CASES.items()]
        (tmp_path / "quotas.yaml").write_text(quotas(*entries))
        applied = invoke("apply", ".", "--auto-approve", cwd=tmp_path)
        assert applied.code == 0, applied.out + applied.err
        text = " ".join(applied.out.split())
        assert "by a factor of 1.5: broker 1 leads 50 % of the partitions" in text
        assert "reaches 67 % of its total" in text
        assert "so 3 brokers together allow 1.5 times the total" in text
        create_placed_topic(servers, "balanced", placed(BALANCED))
        senders = [
            sender
            for name, (_, topic, even, *_) in CASES.items()
            for sender in senders_of(sandbox, name, topic, LEADERS[topic], even=even)
        ]
        rates = measured_rates(sandbox, senders)
    print(table(rates))
    for name, (_, _, _, limit, expected) in CASES.items():
        assert max(rates[name].values()) < 1.1 * limit, table(rates)
        reached = tuple(rates[name][broker] for broker in (1, 2, 3))
        assert reached == pytest.approx(expected, rel=0.2), (name, table(rates))
        assert sum(reached) == pytest.approx(sum(expected), rel=0.15), (name, table(rates))
