"""What docs/record-traffic.md says makes a broker log its requests: real brokers get each snippet and each command of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.features.sandbox.clients import create_topic, produce_steadily
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from tests.support import config_command, raw_quotas
from tests.support.command import invoke
from tests.support.pages import part
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka

PAGE = part("record-traffic", "Enable the request log")
WITHIN_S = 60

LOG4J2 = """\
Configuration:
  Appenders:
    Console:
      name: STDOUT
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
    RollingFile:
      - name: RequestAppender
        fileName: "{log}"
        filePattern: "{log}.%d{{yyyy-MM-dd-HH}}"
        PatternLayout:
          pattern: "[%d] %p %m (%c)%n"
        TimeBasedTriggeringPolicy:
          modulate: true
          interval: 1
  Loggers:
    Root:
      level: INFO
      AppenderRef:
        - ref: STDOUT
{snippet}"""
"""The parts of a file like the one that Kafka 4 has, around the page's snippet."""

RELOAD4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.requestAppender=org.apache.log4j.DailyRollingFileAppender
log4j.appender.requestAppender.DatePattern='.'yyyy-MM-dd-HH
log4j.appender.requestAppender.File={log}
log4j.appender.requestAppender.layout=org.apache.log4j.PatternLayout
log4j.appender.requestAppender.layout.ConversionPattern=[%d] %p %m (%c)%n
{snippet}"""


def snippet(language: str) -> str:
    """The page's only block in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def logs_requests(sandbox: Sandbox, log: Path) -> bool:
    raw_quotas.describe(sandbox.bootstrap_servers)
    return log.exists() and b"Completed request:" in log.read_bytes()


@pytest.mark.parametrize(
    ("version", "name", "whole", "language", "option"),
    [
        ("4.4.0", "log4j2.yaml", LOG4J2, "yaml", "-Dlog4j2.configurationFile={}"),
        pytest.param(
            "3.9.2", "log4j.properties", RELOAD4J, "properties", "-Dlog4j.configuration=file:{}", marks=pytest.mark.large
        ),
    ],
)
def test_a_broker_with_the_snippet_logs_its_requests(
    start_kafka: Callable[[SandboxSpec], Sandbox], tmp_path: Path, version: str, name: str, whole: str, language: str, option: str
) -> None:
    log, file = tmp_path / "kafka-request.log", tmp_path / name
    file.write_text(whole.format(log=log, snippet=snippet(language)), "utf-8")

    broker = start_kafka(SandboxSpec(kafka_version=version, java_options=(option.format(file),)))

    wait_until(lambda: logs_requests(broker, log), within_s=WITHIN_S)


ALICE = Login(name="alice", password="alice-secret")
TOPIC = "orders"


def commands(section: str) -> list[list[str]]:
    """The arguments of each command in a section of the page, with the program first."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", part("record-traffic", section), re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line) for line in blocks.splitlines()]


def produce(broker: Sandbox) -> float:
    """What the client saw as its longest throttle, in milliseconds."""
    sent = produce_steadily(
        broker.sasl_bootstrap_servers or "", TOPIC, client_id="app", bytes_per_second=200_000, seconds=3, login=ALICE
    )
    return sent.throttle_ms_max


@pytest.mark.large
def test_the_request_log_goes_on_and_off_and_the_default_quota_throttles_no_client(
    start_kafka: Callable[[SandboxSpec], Sandbox],
) -> None:
    broker = start_kafka(SandboxSpec(users=(ALICE,)))
    create_topic(broker.bootstrap_servers, TOPIC)
    (expose,) = commands("Make clients visible")
    words = [broker.bootstrap_servers if word == "b1:9092" else word for word in expose]
    invoke(*words[1:], "--auto-approve", cwd=broker.folder)
    everybody = frozenset({("client-id", None)})
    assert raw_quotas.settled(broker.bootstrap_servers) == {everybody: {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12}}
    switch_on, switch_off = (line[3:] for line in commands("Enable the request log") if line[:1] == ["kafka-configs"])
    log = broker.nodes[0].log_file
    config_command.run(broker, *switch_on)
    assert produce(broker) == 0
    wait_until(lambda: b"Completed request:" in log.read_bytes())

    config_command.run(broker, *switch_off)
    wait_until(lambda: log.read_bytes().count(b"kafka.request.logger") > 0)
    before = log.read_bytes().count(b"Completed request:")
    produce(broker)
    assert log.read_bytes().count(b"Completed request:") <= before + 5
