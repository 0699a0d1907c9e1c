"""A total by leaders over three real brokers with the plugin, measured: each broker enforces its part. Needs a JDK."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.sandbox.cluster import running
from tests.support.broker_classes import GROUP_SETTINGS, with_groups
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.measured_totals import KEY, MEASURED, SKEWED, TOTAL, measured_rates, placed, senders_of, table
from tests.support.partition_senders import create_placed_topic

pytestmark = [pytest.mark.kafka, pytest.mark.interop]
SHORT_WINDOW = {"quota.window.num": 3, "quota.window.size.seconds": 1}


def test_the_plugin_keeps_a_total_with_skewed_leaders(tmp_path: Path) -> None:
    with running(with_groups(MEASURED)) as sandbox:
        servers = sandbox.bootstrap_servers
        create_placed_topic(servers, "skewed", placed(SKEWED))
        callback = {"class": GROUP_SETTINGS["client.quota.callback.class"]}
        connection = {"bootstrapServers": servers.split(",")}
        (tmp_path / "prod.yaml").write_text(cluster(connection=connection, quotaCallback=callback, brokerSettings=SHORT_WINDOW))
        names = {"plugin-even": True, "plugin-free": False}
        value = {"proportional": TOTAL, "topics": ["skewed"]}
        (tmp_path / "quotas.yaml").write_text(quotas(({"client-id": list(names)}, {KEY: value})))
        applied = invoke("apply", ".", "--auto-approve", cwd=tmp_path)
        assert applied.code == 0, applied.out + applied.err
        senders = [sender for name, even in names.items() for sender in senders_of(sandbox, name, "skewed", SKEWED, even=even)]
        rates = measured_rates(sandbox, senders)
        logs = [word for node in sandbox.nodes for word in ("--traffic", f"{node.id}={node.request_log_file}")]
        more = ("--factor", "1.5", "--format", "json")
        simulated = invoke("backtest", ".", "--bootstrap-server", servers, *logs, *more, cwd=tmp_path)
        assert simulated.code == 0, simulated.err
    print(table(rates))
    rows = simulated.json()["verdicts"]
    limits = {(row["bucket"]["client-id"], row["broker"]): row["limit_after"] for row in rows if row["limit_after"] is not None}
    # Each broker is judged by the part that it enforces.
    assert limits == {
        (name, broker): pytest.approx(TOTAL * SKEWED.count(broker) / len(SKEWED)) for name in names for broker in (1, 2, 3)
    }
    for name in names:
        for broker in (1, 2, 3):
            part = TOTAL * SKEWED.count(broker) / len(SKEWED)
            assert rates[name][broker] == pytest.approx(part, rel=0.2), (name, broker, table(rates))
        assert sum(rates[name].values()) == pytest.approx(TOTAL, rel=0.15), (name, table(rates))
