"""The broker's logging: its log to standard output, the request log (KIP-673) to a file of its own.

Kafka 4.x logs through Log4j 2, 3.9 through reload4j; both read the request log's path from the system property
``kafka.quotas.request.log``. The request log's layout is the one Kafka ships: ``[%d] %p %m (%c)%n``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

REQUEST_LOG_PROPERTY: Final = "kafka.quotas.request.log"
_PATTERN: Final = "[%d] %p %m (%c)%n"

_LOG4J2_REQUEST_APPENDER: Final = f"""\
    <File name="requests" fileName="${{sys:{REQUEST_LOG_PROPERTY}}}" immediateFlush="true">
      <PatternLayout pattern="{_PATTERN}" charset="UTF-8"/>
    </File>
"""
_LOG4J2_REQUEST_LOGGER: Final = """\
    <Logger name="kafka.request.logger" level="DEBUG" additivity="false"><AppenderRef ref="requests"/></Logger>
"""
_RELOAD4J: Final = f"""\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.encoding=UTF-8
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern={_PATTERN}
"""
_RELOAD4J_REQUESTS: Final = f"""\
log4j.logger.kafka.request.logger=DEBUG, requests
log4j.additivity.kafka.request.logger=false
log4j.appender.requests=org.apache.log4j.FileAppender
log4j.appender.requests.File=${{{REQUEST_LOG_PROPERTY}}}
log4j.appender.requests.encoding=UTF-8
log4j.appender.requests.ImmediateFlush=true
log4j.appender.requests.layout=org.apache.log4j.PatternLayout
log4j.appender.requests.layout.ConversionPattern={_PATTERN}
"""


def uses_log4j2(kafka_version: str) -> bool:
    """Whether this Kafka logs through Log4j 2."""
    return int(kafka_version.split(".", 1)[0]) >= 4


def config_file_name(kafka_version: str) -> str:
    """What the configuration file must be called to be understood."""
    return "log4j2.xml" if uses_log4j2(kafka_version) else "log4j.properties"


def config_text(kafka_version: str, *, request_log: bool) -> str:
    """The configuration file's content."""
    if not uses_log4j2(kafka_version):
        return _RELOAD4J + (_RELOAD4J_REQUESTS if request_log else "")
    appender = _LOG4J2_REQUEST_APPENDER if request_log else ""
    logger = _LOG4J2_REQUEST_LOGGER if request_log else ""
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN" shutdownHook="disable">
  <Appenders>
    <Console name="console"><PatternLayout pattern="{_PATTERN}" charset="UTF-8"/></Console>
{appender}  </Appenders>
  <Loggers>
{logger}    <Root level="INFO"><AppenderRef ref="console"/></Root>
  </Loggers>
</Configuration>
"""


def java_options(kafka_version: str, *, config: Path, request_log: Path | None) -> tuple[str, ...]:
    """The system properties that make the JVM use ``config`` and write requests, if it logs them, to ``request_log``."""
    option = f"-Dlog4j2.configurationFile={config}" if uses_log4j2(kafka_version) else f"-Dlog4j.configuration={config.as_uri()}"
    return (option,) if request_log is None else (option, f"-D{REQUEST_LOG_PROPERTY}={request_log}")
