"""The commands that docs/record-traffic.md shows, on real brokers, and what their logs then have."""

from __future__ import annotations

import datetime
import re
import shlex
from pathlib import Path

import pytest

from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from reconciler.features.violations.log import SecondsOfThrottles
from reconciler.model import Entity
from reconciler.traffic import Kind, RecordedThrottle
from tests.support import config_command, raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.pages import page
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka

PAGE = page("record-traffic")
ALICE = Login(name="alice", password="alice-secret")
PAIR = frozenset({("user", "alice"), ("client-id", "app")})
TOPIC = "orders"
LOGGERS = {"4.4.0": "org.apache.kafka.server.quota.ClientQuotaManager", "3.9.2": "kafka.server.ClientQuotaManager"}


def commands(section: str) -> list[list[str]]:
    """The arguments of each ``kafka-configs`` in a section of the page, without the server."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line)[3:] for line in blocks.splitlines() if line.startswith("kafka-configs --bootstrap-server ")]


def violations(broker: Sandbox) -> tuple[RecordedThrottle, ...]:
    throttles = SecondsOfThrottles()
    with broker.nodes[0].log_file.open("rb") as lines:
        for line in lines:
            throttles.add(line, broker=1)
    return throttles.in_order()


def assert_traffic_of_backtest_and_why(broker: Sandbox, folder: Path) -> None:
    """The log as the page gives it to both commands, while the quota stays and when it is raised."""
    manifests = folder / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    match = {"user": "alice", "client-id": "app"}
    (folder / "now.json").write_text(snapshot({Entity.of(match): {"producer_byte_rate": 20_000.0}}))
    # A copy, since the log goes on.
    (folder / "kafka").mkdir()
    (folder / "kafka" / "server.log").write_bytes(broker.nodes[0].log_file.read_bytes())
    for limit, verdict in (("20000", "throttled"), ("40000", "inconclusive")):
        (manifests / "quotas.yaml").write_text(quotas((match, {"producer_byte_rate": limit})))
        done = invoke("backtest", *shown("backtest"), "--format", "json", cwd=folder)
        assert done.code == 0, done.err
        (row,) = done.json()["verdicts"]
        assert (row["bucket"], row["verdict"]) == ({"user": "alice", "client-id": "app"}, verdict)
    first = min(violations(broker), key=lambda one: one.begin_us)
    at = f"{datetime.datetime.fromtimestamp(first.begin_us / 1e6, datetime.UTC):%Y-%m-%d %H:%M:%S}"
    why = [at if part.startswith("2026-") else part for part in shown("why")]
    done = invoke("why", *why, "--timezone", "UTC", cwd=folder)
    assert done.code == 0, done.err
    assert f"client-id=app was throttled from {at}" in done.out
    assert "the longest" in done.out


def shown(command: str) -> list[str]:
    """The arguments of a command of this program that the section shows, with the folder of this test's log."""
    (text,) = re.findall(r"^## The violation log\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    (line,) = [line for line in blocks.splitlines() if line.startswith(f"kafka-quotas {command} ")]
    return [part.replace("/var/log/kafka", "kafka") for part in shlex.split(line)[2:]]


def produce(broker: Sandbox) -> float:
    """What the client saw as its longest throttle, in milliseconds."""
    sent = produce_steadily(
        broker.sasl_bootstrap_servers or "", TOPIC, client_id="app", bytes_per_second=200_000, seconds=3, login=ALICE
    )
    return sent.throttle_ms_max


@pytest.mark.large
@pytest.mark.parametrize("version", ["4.4.0", "3.9.2"])
def test_the_violation_log_has_the_throttles_that_the_client_saw(version: str, tmp_path: Path) -> None:
    with running(SandboxSpec(kafka_version=version, users=(ALICE,))) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        raw_quotas.alter(broker.bootstrap_servers, {PAIR: {"producer_byte_rate": 20_000.0}})
        raw_quotas.settled(broker.bootstrap_servers)
        (command,) = commands("The violation log")
        assert LOGGERS[version] in PAGE
        switch = [part.replace(LOGGERS["4.4.0"], LOGGERS[version]) for part in command]
        config_command.run(broker, *switch)

        longest_ms = produce(broker)

        assert longest_ms > 0
        wait_until(lambda: longest_ms in {violation.longest_ms for violation in violations(broker)})
        logged = violations(broker)
        assert {(one.kind, one.user, one.client_id) for one in logged} == {(Kind.PRODUCE, "alice", "app")}
        assert max(one.longest_ms for one in logged) == longest_ms
        assert_traffic_of_backtest_and_why(broker, tmp_path)

        config_command.run(broker, *[part.replace("=DEBUG", "=INFO") for part in switch])
        before = violations(broker)
        assert produce(broker) > 0
        assert violations(broker) == before


def expose(broker: Sandbox) -> Done:
    """Run the command of the page that makes clients visible."""
    (text,) = re.findall(r"^## Make clients visible\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    (line,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    words = [broker.bootstrap_servers if word == "b1:9092" else word for word in shlex.split(line)]
    return invoke(*words[1:], "--auto-approve", cwd=broker.folder)


@pytest.mark.large
def test_the_request_log_goes_on_and_off_and_the_default_quota_throttles_no_client() -> None:
    with running(SandboxSpec(users=(ALICE,))) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        expose(broker)
        everybody = frozenset({("user", None), ("client-id", None)})
        assert raw_quotas.settled(broker.bootstrap_servers) == {
            everybody: {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12}
        }
        switch_on, switch_off = commands("Enable the request log")
        log = broker.nodes[0].log_file
        config_command.run(broker, *switch_on)
        assert produce(broker) == 0
        wait_until(lambda: b"Completed request:" in log.read_bytes())

        config_command.run(broker, *switch_off)
        wait_until(lambda: log.read_bytes().count(b"kafka.request.logger") > 0)
        before = log.read_bytes().count(b"Completed request:")
        produce(broker)
        assert log.read_bytes().count(b"Completed request:") <= before + 5
