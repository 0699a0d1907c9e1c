"""``headroom --all-clusters``: 38 clusters that answer, one whose brokers hang, and one whose metrics server hangs."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import raw_quotas
from tests.support.bad_servers import serving, silent
from tests.support.command import invoke
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import served
from tests.support.schemas import valid

if TYPE_CHECKING:
    from reconciler.features.sandbox.spec import Sandbox

pytestmark = pytest.mark.kafka
CLUSTERS = 40


def answer(_: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
    """Alice's rate is that of the cluster's number; nobody else has any."""
    fields = urllib.parse.parse_qs(body.decode())
    number = int(fields["query"][0].partition('cluster="c')[2][:2])
    labels = {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "broker_id": "1"}
    data = {
        "resultType": "matrix",
        "result": [{"metric": labels, "values": [[float(fields["time"][0]) - 1, str(number * 1000)]]}],
    }
    return 200, "application/json", json.dumps({"status": "success", "data": data}).encode()


@pytest.fixture
def fleet(clean_kafka: Sandbox, tmp_path: Path) -> Iterator[Path]:
    alice, idle = frozenset({("user", "alice")}), frozenset({("user", "idle")})
    limit = {"producer_byte_rate": 20_000.0}
    raw_quotas.alter(clean_kafka.bootstrap_servers, {alice: limit, idle: limit})
    raw_quotas.settled(clean_kafka.bootstrap_servers)
    with served(answer) as port, serving(silent) as hangs:
        for number in range(CLUSTERS):
            name = f"c{number:02}"
            address = f"127.0.0.1:{hangs if number == 39 else port}"
            server = f"127.0.0.1:{hangs}" if number == 38 else clean_kafka.bootstrap_servers
            text = cluster(
                name,
                clusterId=clean_kafka.cluster_id if number != 38 else name,
                connection={"bootstrapServers": [server]},
                traffic={"prometheus": f"http://{address}", "match": [f'cluster="{name}"']},
            )
            (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
        entry = ({"user": "alice"}, {"producer_byte_rate": "20000B"})
        (tmp_path / "quotas.yaml").write_text(quotas(entry, owner="team-a"), "utf-8")
        yield tmp_path


def test_the_nearest_groups_of_all_clusters_and_those_that_hang_by_name(fleet: Path) -> None:
    done = invoke("headroom", ".", "--all-clusters", "--top", "3", cwd=fleet)
    assert done.code == 1, done.err
    lines = done.out.splitlines()
    assert "38 of 40 clusters: 38 quota groups with a limit, 17 above 100 %, 0 throttled" in lines[0]
    assert [line.split()[-1] for line in lines[2:5]] == ["c37", "c36", "c35"]
    assert lines[5] == "35 more quota groups not shown."
    assert any(line.split() == ["185", "38", "17", "0", "team-a"] for line in lines), done.out
    assert "39 limits: c00 user=alice producer_byte_rate, c00 user=idle producer_byte_rate" in done.out
    late = [line.split()[1] for line in lines if "could not be read: no answer within 7 s" in line]
    assert late == ["c38", "c39"]


def test_its_document_lists_every_cluster(fleet: Path) -> None:
    done = invoke("headroom", ".", "--all-clusters", "--top", "3", "--format", "json", cwd=fleet)
    rows = done.json()["clusters"]
    assert [len(row.get("groups", [])) for row in rows] == [0] * 35 + [1, 1, 1, 0, 0]
    valid(rows[36], "headroom")
    assert [limit["entity"] for limit in rows[36]["unused"]] == [{"user": "idle"}]
    assert [row["failure_reason"] for row in rows[38:]] == ["unreachable", "unreachable"]


@pytest.mark.parametrize("option", [("--cluster", "c01"), ("--current", "x.json"), ("--traffic", "logs")])
def test_options_about_one_cluster_are_refused(option: tuple[str, str], tmp_path: Path) -> None:
    done = invoke("headroom", ".", "--all-clusters", *option, cwd=tmp_path)
    assert (done.code, option[0] in done.err) == (64, True), done.err
