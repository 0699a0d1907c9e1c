"""What the broker is told to log."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import javaproperties
import pytest

from reconciler.features.sandbox.configuration import logging_options, logging_text
from reconciler.features.sandbox.node import telling_lines


@pytest.mark.parametrize("wanted", [True, False])
def test_kafka_4_logs_requests_to_a_file_of_their_own_when_wanted(wanted: bool) -> None:
    document = ET.fromstring(logging_text("4.3.1", request_log=wanted))
    loggers = {logger.get("name"): logger for logger in document.iter("Logger")}
    assert ("kafka.request.logger" in loggers) is wanted
    if wanted:
        assert loggers["kafka.request.logger"].get("level") == "DEBUG"
        assert loggers["kafka.request.logger"].get("additivity") == "false"
        appender = document.find(".//File")
        assert appender is not None
        assert appender.get("immediateFlush") == "true"
        layout = appender.find("PatternLayout")
        assert layout is not None
        assert layout.get("pattern") == "[%d] %p %m (%c)%n"


@pytest.mark.parametrize("wanted", [True, False])
def test_kafka_3_logs_the_same_through_reload4j(wanted: bool) -> None:
    settings = javaproperties.loads(logging_text("3.9.2", request_log=wanted))
    assert settings.get("log4j.logger.kafka.request.logger") == ("DEBUG, requests" if wanted else None)
    if wanted:
        assert settings["log4j.additivity.kafka.request.logger"] == "false"
        assert settings["log4j.appender.requests.layout.ConversionPattern"] == "[%d] %p %m (%c)%n"


def test_each_logging_library_is_told_where_its_configuration_is() -> None:
    where = {"config": Path("/s/conf"), "request_log": Path("/s/requests")}
    assert logging_options("4.3.1", **where)[0] == "-Dlog4j2.configurationFile=/s/conf"
    assert logging_options("3.9.2", **where)[0] == "-Dlog4j.configuration=file:///s/conf"


def test_the_telling_lines_of_a_log_are_the_first_troubles_and_the_end(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    quiet = [f"INFO line {n}" for n in range(50)]
    log.write_text("\n".join([*quiet, "ERROR the cause " + "x" * 500, *quiet]))
    lines = telling_lines(log)
    assert lines[0].startswith("ERROR the cause")
    assert len(lines[0]) == 300
    assert lines[1:] == tuple(quiet[-8:])


def test_a_log_that_was_never_written_tells_nothing(tmp_path: Path) -> None:
    assert telling_lines(tmp_path / "none.log") == ()
