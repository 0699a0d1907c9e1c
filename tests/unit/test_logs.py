"""Diagnostic records carry data instead of sentences, cannot be forged, and print as one line each."""

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.logs import LIBRARIES, JsonFormatter, TextFormatter, event_data, hush_libraries, log_event

TEXTS = st.text(max_size=20)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXTS, values, max_size=3),
    max_leaves=8,
)


def fresh_logger(name="reconciler.backends.fake", level=logging.DEBUG):
    return logging.Logger(name, level)  # noqa: LOG001 - not in the process's tree, so that no other test sees its handlers


def logger_into(formatter, level=logging.DEBUG, name="reconciler.backends.fake"):
    stream = io.StringIO()
    log = fresh_logger(name, level)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    log.addHandler(handler)
    return log, stream


@given(name=TEXTS, value=DATA)
def test_any_data_are_one_line_of_json(name, value):
    log, stream = logger_into(JsonFormatter())

    log_event(log, "broker answered", name=name, value=value)

    lines = stream.getvalue().splitlines()
    row = json.loads(lines[0])
    assert len(lines) == 1
    assert (row["level"], row["logger"], row["event"]) == ("debug", "reconciler.backends.fake", "broker answered")
    assert row["name"].isprintable()
    assert {"value", "ts"} <= row.keys()


@given(name=TEXTS, value=DATA)
def test_any_data_are_one_line_of_text(name, value):
    log, stream = logger_into(TextFormatter())

    log_event(log, "broker answered", name=name, value=value)

    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    assert "debug backends.fake: broker answered name=" in lines[0]


def test_text_puts_quotes_around_values_that_could_be_taken_for_another_field():
    log, stream = logger_into(TextFormatter())

    log_event(log, "broker answered", api="Metadata", entity="user=a b", milliseconds=3.25, errors={"7": 2})

    assert stream.getvalue().endswith('broker answered api=Metadata entity="user=a b" milliseconds=3.25 errors={"7": 2}\n')


def test_data_cannot_replace_the_time_or_the_event():
    log, stream = logger_into(JsonFormatter())

    log_event(log, "broker answered", ts="never", event="forged")

    row = json.loads(stream.getvalue())
    assert row["event"] == "broker answered"
    assert row["ts"] != "never"


def test_nothing_is_made_of_the_data_while_the_level_is_off():
    class Untouchable(dict):
        def items(self):
            raise AssertionError("the data were looked at")

    log, stream = logger_into(JsonFormatter(), logging.INFO)

    log_event(log, "broker answered", errors=Untouchable(a=1))

    assert stream.getvalue() == ""


def _keep_in(records):
    def keep(record):
        records.append(record)
        return True

    return keep


def test_the_record_points_to_the_line_that_logged_it():
    records: list[logging.LogRecord] = []
    log = fresh_logger()
    log.addFilter(_keep_in(records))

    log_event(log, "broker answered", broker=3)

    assert records[0].filename == "test_logs.py"
    assert event_data(records[0]) == {"broker": 3}


def test_a_record_of_a_library_has_no_data_and_its_text_is_escaped():
    log, stream = logger_into(JsonFormatter(), name="kafka.net")

    log.warning("line %s", "one\ntwo")

    row = json.loads(stream.getvalue())
    assert (row["event"], row["message"]) == ("library", "line one\\u000atwo")


@pytest.mark.parametrize(("level", "expected"), [(logging.DEBUG, logging.INFO), (logging.ERROR, logging.ERROR)])
def test_libraries_never_log_the_bytes_that_they_send(level, expected):
    before = {name: logging.getLogger(name).level for name in LIBRARIES}
    try:
        hush_libraries(level)

        assert {logging.getLogger(name).level for name in LIBRARIES} == {expected}
    finally:
        for name, was in before.items():
            logging.getLogger(name).setLevel(was)
