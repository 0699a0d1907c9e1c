"""Totals of a cluster on three real brokers, and what happens when one of them leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import NewTopic

from reconciler.features.sandbox.clients import admin_client
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.polling import wait_until
from tests.support.three_nodes import ThreeNodes

pytestmark = pytest.mark.kafka

MIB = 2**20
COPIED = {0: [1, 2], 1: [2, 3], 2: [3, 1]}


def _lists(client: Any, topic: str) -> bool:
    return topic in client.list_topics()


def create(nodes: ThreeNodes, topic: str, assignment: Mapping[int, list[int]]) -> None:
    with admin_client(nodes.servers()) as client:
        client.create_topics([NewTopic(name=topic, replica_assignments=dict(assignment))])
    for server in nodes.servers().split(","):
        # Each broker learns of it by itself, and a command asks any.
        with admin_client(server) as client:
            wait_until(partial(_lists, client, topic))


def manifests(folder: Path, total: str, *names: str, **spec: Any) -> None:
    folder.joinpath("prod.yaml").write_text(cluster(**spec))
    match = {"client-id": list(names)}
    folder.joinpath("quotas.yaml").write_text(quotas((match, {"producer_byte_rate": {"clusterTotal": total}})))


def run(nodes: ThreeNodes, folder: Path, command: str, *arguments: str) -> Done:
    return invoke(command, ".", "--bootstrap-server", nodes.servers(), *arguments, cwd=folder)


def apply(nodes: ThreeNodes, folder: Path, *arguments: str) -> Done:
    return run(nodes, folder, "apply", "--auto-approve", "--format", "json", *arguments)


def rate(nodes: ThreeNodes, folder: Path, name: str) -> float:
    done = run(nodes, folder, "describe", "--name", f"client-id={name}", "--format", "json")
    (row,) = done.json()["entities"]
    return float(row["quotas"]["producer_byte_rate"])


@pytest.mark.large
def test_a_broker_that_leaves_makes_a_saved_plan_stale_and_changes_the_parts(nodes: ThreeNodes, tmp_path: Path) -> None:
    create(nodes, "copied", COPIED)
    manifests(tmp_path, "60MiB", "app")
    saved = run(nodes, tmp_path, "plan", "--out", "json=plan.json")
    assert "divided by 3 brokers" in saved.out
    assert json.loads(tmp_path.joinpath("plan.json").read_text())["brokers"] == [1, 2, 3]

    nodes.kill(3)
    wait_until(lambda: nodes.listed() == {1, 2})
    stale = apply(nodes, tmp_path, "--plan", "plan.json")
    assert stale.code == 3
    assert "divided among brokers 1, 2, 3 when it was made, and now among 1, 2" in stale.json()["message"]

    down = run(nodes, tmp_path, "plan", "--out", "json=two.json")
    assert "60 MiB/s in total, divided by 2 brokers" in down.out
    assert "Broker 3 has replicas and is not up" in down.out
    nodes.mend()
    wait_until(lambda: nodes.listed() == {1, 2, 3})
    joined = apply(nodes, tmp_path, "--plan", "two.json")
    assert joined.code == 3
    assert "divided among brokers 1, 2 when it was made, and now among 1, 2, 3" in joined.json()["message"]

    assert apply(nodes, tmp_path).code == 0
    assert rate(nodes, tmp_path, "app") == 20 * MIB
    nodes.kill(3)
    wait_until(lambda: nodes.listed() == {1, 2})
    words = " ".join(run(nodes, tmp_path, "plan").out.split())
    assert "10 MiB/s more for each broker, because broker 3 left" in words
    assert "Guard rebalance needs acceptance" in words
    refused = apply(nodes, tmp_path)
    assert (refused.code, rate(nodes, tmp_path, "app")) == (3, 20 * MIB)
    assert apply(nodes, tmp_path, "--accept", "rebalance").code == 0
    assert rate(nodes, tmp_path, "app") == 30 * MIB


def test_effective_quotas_follow_the_leaders_of_the_live_cluster(nodes: ThreeNodes, tmp_path: Path) -> None:
    create(nodes, "by-leaders", {0: [1], 1: [1], 2: [2], 3: [3]})
    (tmp_path / "prod.yaml").write_text(cluster())
    value = {"proportional": "40MiB", "topics": ["by-leaders"]}
    (tmp_path / "quotas.yaml").write_text(quotas(({"client-id": "app"}, {"producer_byte_rate": value})))
    for state in ("manifests", "planned"):
        done = run(nodes, tmp_path, "resolve", "--state", state, "--names", "user=u,client-id=app", "--format", "json")
        assert done.code == 0, done.err
        assert done.json()["quotas"]["producer_byte_rate"]["value"] == 20 * MIB
