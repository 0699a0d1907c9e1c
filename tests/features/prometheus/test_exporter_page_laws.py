"""Law: a metrics page is read as prometheus_client's parser reads it, whatever the labels are."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_open_metrics
from prometheus_client.parser import text_string_to_metric_families

from reconciler.features.prometheus.exporter_page import PageParser

TEXTS = st.text(
    st.one_of(st.sampled_from('"\\{}=,# \n\r\t\x00\x1f\x85\u2028'), st.characters(exclude_categories=["Cs"])), max_size=12
)
VALUES = st.floats() | st.integers(-(10**20), 10**20).map(float)
NAMES = ("kafka_server_.*",)


@given(st.dictionaries(st.tuples(TEXTS, TEXTS), VALUES, max_size=8), st.booleans())
def test_a_page_is_read_as_the_library_reads_it(rows: dict[tuple[str, str], float], open_metrics: bool) -> None:
    registry = CollectorRegistry()
    gauge = Gauge(
        "kafka_server_Produce_byte_rate", 'help "with" {braces}\nkafka_server_x 1', ["user", "client_id"], registry=registry
    )
    Gauge("jvm_threads", "kafka_server_x{} 1", registry=registry).set(3)
    for (user, client_id), value in rows.items():
        gauge.labels(user=user, client_id=client_id).set(value)
    page = generate_open_metrics(registry) if open_metrics else generate_latest(registry)
    samples, unreadable = PageParser(NAMES, {}).parse(page)
    assert unreadable == 0
    read = {(series.labels["user"], series.labels["client_id"]): value for series, value in samples}
    assert len(samples) == len(rows)
    assert {names: _shown(value) for names, value in read.items()} == {names: _shown(value) for names, value in rows.items()}


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["kafka_server_Produce_byte_rate", "{", "}", '"', "\\", "=", ",", " ", "\t", "user", "1", "1.5e3", "NaN"]
        ),
        TEXTS.filter(lambda text: not set(text) & {"\n", "#"}),
    ),
    max_size=14,
).map(lambda parts: "kafka_server_" + "".join(parts))


@given(LINES)
def test_a_line_of_any_text_is_a_sample_only_if_the_library_reads_the_same(line: str) -> None:
    samples, unreadable = PageParser(NAMES, {}).parse(line.encode())
    assert len(samples) + unreadable == 1
    if not samples:
        return
    ((series, value),) = samples
    ((sample,),) = [family.samples for family in text_string_to_metric_families(line)]
    assert {"__name__": sample.name, **sample.labels} == dict(series.labels)
    assert _shown(float(sample.value)) == _shown(value)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(page: bytes) -> None:
    samples, unreadable = PageParser(NAMES, {}).parse(page)
    assert len(samples) + unreadable <= page.count(b"\n") + 1


def _shown(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)
