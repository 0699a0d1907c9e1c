"""What docs/record-traffic.md says makes a broker log its requests: a real broker gets each snippet of the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support import raw_quotas
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
