"""``describe`` and ``alter`` of a cluster that keeps its quotas in ZooKeeper: past its brokers, and seen by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.entity import DEFAULT
from tests.builders import pair, user
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.kip_text import read_description
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka

FILTERS = [[], ["--strict"], ["--any", "user"], ["--defaults", "client-id"], ["--name", "user=CN=a, b"], ["--prefix", "user=al"]]


def test_what_is_altered_in_zookeeper_its_brokers_describe_and_filters_agree(tmp_path: Path, zookeeper_kafka: Sandbox) -> None:
    there = ("--zookeeper", str(zookeeper_kafka.zookeeper))
    for entity in (["--name", "user=alice"], ["--name", "user=CN=a, b"], ["--name", "user=alice", "--defaults", "client-id"]):
        add = ("--add", "producer_byte_rate=1TB,request_percentage=100000.5")
        done = invoke("alter", *there, *entity, *add, "--auto-approve", "--quiet", "--accept", "default-entity", cwd=tmp_path)
        assert done.code == 0, done.out + done.err
    wait_until(lambda: len(raw_quotas.describe(zookeeper_kafka.bootstrap_servers)) == 3)

    for options in FILTERS:
        past = invoke("describe", *there, *options, cwd=tmp_path)
        through = invoke("describe", "--bootstrap-server", zookeeper_kafka.bootstrap_servers, *options, cwd=tmp_path)
        assert (past.code, through.code, past.out) == (0, 0, through.out), options
    everything = read_description(invoke("describe", *there, cwd=tmp_path).out)
    quotas = {"producer_byte_rate": 1e12, "request_percentage": 100000.5}
    assert everything == dict.fromkeys([user("alice"), user("CN=a, b"), pair("alice", DEFAULT)], quotas)

    read = invoke("describe", *there, "--format", "json", cwd=tmp_path).json()
    assert read["observed"]["from"] == "zookeeper"
