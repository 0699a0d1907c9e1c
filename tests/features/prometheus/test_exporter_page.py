"""Reading the metrics page of an exporter: what is accepted, refused with which sentence, and bounded, and that of any labels."""

from __future__ import annotations

import gzip
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_open_metrics
from prometheus_client.parser import text_string_to_metric_families

from reconciler.errors import TrafficError, UsageError
from reconciler.features.prometheus import ExporterPage, HttpLogin
from reconciler.features.prometheus.exporter_page import PageParser
from reconciler.features.prometheus.http import basic_auth
from tests.support.bad_servers import hangs_up, refusing_port, serving, silent
from tests.support.metrics_exporter import Reply, served

PAGE = b"""# HELP kafka_server_Produce_byte_rate rate
# TYPE kafka_server_Produce_byte_rate gauge
kafka_server_Produce_byte_rate{client_id="app",user="alice",} 1234.5
kafka_server_Produce_throttle_time{client_id="\\"a\\\\\\"b\\"",user="alice"} NaN
kafka_server_Produce_queue_size 2.0
jvm_threads_current 47.0
"""


@contextmanager
def page(reply: Reply, **options: object) -> Iterator[ExporterPage]:
    with served(reply) as port:
        reader = ExporterPage(f"http://127.0.0.1:{port}", **options)  # type: ignore[arg-type]  # options of each test
        try:
            yield reader
        finally:
            reader.close()


def text_page(body: bytes, kind: str = "text/plain; version=0.0.4") -> Reply:
    return lambda *_: (200, kind, body)


def test_wanted_series_of_a_page_with_the_address_as_instance() -> None:
    with page(text_page(PAGE), broker=3, clock=lambda: 1000.5) as reader:
        read = reader.read()
        instance = reader.address.removeprefix("http://").removesuffix("/metrics")
    rows = [(dict(series.labels), value) for series, value in read.samples]
    more = {"instance": instance, "broker": "3"}
    assert rows[0] == ({"__name__": "kafka_server_Produce_byte_rate", "client_id": "app", "user": "alice", **more}, 1234.5)
    assert rows[1][0]["client_id"] == '"a\\"b"'
    assert math.isnan(rows[1][1])
    assert rows[2] == ({"__name__": "kafka_server_Produce_queue_size", **more}, 2.0)
    assert (len(rows), read.unreadable, read.at_s, read.bytes) == (3, 0, 1000.5, len(PAGE))


def test_a_series_is_the_same_object_on_the_next_page_and_forgotten_when_it_is_gone() -> None:
    bodies = [PAGE, PAGE.replace(b"1234.5", b"7"), b"jvm_threads_current 47.0\n", PAGE]
    with page(lambda *_: (200, "text/plain", bodies.pop(0))) as reader:
        first, second, empty, third = (reader.read() for _ in range(4))
    assert first.samples[0][0] is second.samples[0][0]
    assert second.samples[0][1] == 7
    assert empty.samples == ()
    assert third.samples[0][0] is not first.samples[0][0]


@pytest.mark.parametrize("line", [b'{user="alice" 1', b'{user="a",user="b"} 1', b'{user="a"} one', b'{user="\xff"} 1', b"{} 1_0"])
def test_a_damaged_line_of_a_wanted_metric_is_counted(line: bytes) -> None:
    with page(text_page(PAGE + b"kafka_server_Produce_byte_rate" + line + b"\n")) as reader:
        read = reader.read()
    assert (len(read.samples), read.unreadable) == (3, 1)


def test_gzip_and_the_headers_of_the_login() -> None:
    seen: list[dict[str, str]] = []

    def reply(_path: str, headers: dict[str, str], _body: bytes) -> tuple[int, str, bytes]:
        seen.append(headers)
        return (200, "text/plain\r\ncontent-encoding: gzip", gzip.compress(PAGE))

    with page(reply, login=HttpLogin(headers={"Authorization": basic_auth("u", "p")})) as reader:
        assert len(reader.read().samples) == 3
    assert (seen[0]["accept-encoding"], seen[0]["authorization"]) == ("gzip", "Basic dTpw")


def test_open_metrics_with_an_exemplar_and_a_time() -> None:
    body = b'kafka_server_produce_x{user="a # b"} 2.5 1700000000.5 # {trace="t"} 1\n# EOF\n'
    with page(text_page(body, "application/openmetrics-text; version=1.0.0; charset=utf-8")) as reader:
        ((series, value),) = reader.read().samples
    assert (series.labels["user"], value) == ("a # b", 2.5)


REFUSED = {
    "html": (200, "text/html", b"<!DOCTYPE html>\n<html>\n", "the first line is not in the exposition format"),
    "json": (200, "application/json", b'{"status":"success"}', "the first line is not in the exposition format"),
    "empty": (200, "text/plain", b"", "the page is empty"),
    "half a line": (200, "text/plain", PAGE[:-2], "is not complete"),
    "no end": (200, "application/openmetrics-text", PAGE, "is not complete"),
    "login": (401, "text/plain", b"no", "HTTP status 401. The exporter refuses the login. Check --http-config."),
    "path": (404, "text/plain", b"no", "HTTP status 404. This address has no metrics page. Check the path."),
    "elsewhere": (302, "text/plain", b"", "HTTP status 302."),
    "half of gzip": (200, "text/plain\r\ncontent-encoding: gzip", gzip.compress(PAGE)[:-12], "is not complete"),
    "not gzip": (200, "text/plain\r\ncontent-encoding: gzip", PAGE, "the answer cannot be unpacked"),
    "bomb": (200, "text/plain\r\ncontent-encoding: gzip", gzip.compress(b"a 1\n" * 600_000), "larger than 1,000,000 bytes"),
    "endless line": (200, "text/plain", b"a 1\n" + b"x" * 999_000 * 2, "is not a metrics page"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_a_whole_page_is_refused(case: str) -> None:
    status, kind, body, message = REFUSED[case]
    with page(lambda *_: (status, kind, body), most_bytes=1_000_000) as reader, pytest.raises(TrafficError) as caught:
        reader.read()
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{reader.address} ")


def test_a_cut_answer_is_no_page_and_the_next_read_works() -> None:
    answers = [PAGE[:90], PAGE]

    def cut(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(PAGE))
        connection.sendall(answers.pop(0))

    with serving(cut) as port:
        reader = ExporterPage(f"http://127.0.0.1:{port}/metrics")
        with pytest.raises(TrafficError, match="does not answer"):
            reader.read()
        assert len(reader.read().samples) == 3
        reader.close()


def test_servers_that_do_not_answer() -> None:
    reader = ExporterPage(f"http://127.0.0.1:{refusing_port()}/metrics")
    with pytest.raises(TrafficError, match="does not answer"):
        reader.read()
    for handle in (silent, hangs_up):
        with serving(handle) as port:
            reader = ExporterPage(f"http://127.0.0.1:{port}/metrics", timeout_s=0.3)
            with pytest.raises(TrafficError, match="does not answer"):
                reader.read()
            reader.close()


@pytest.mark.parametrize("address", ["kafka-1:7071", "ftp://h/metrics", "http://", "http://h:x/", "http://h/a b", "http://h/#x"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="A metrics page is metrics"):
        ExporterPage(address)


def test_a_login_in_the_address_is_refused_without_printing_it() -> None:
    with pytest.raises(UsageError) as caught:
        ExporterPage("http://user:geheim@h/metrics")
    assert "geheim" not in str(caught.value)


TEXTS = st.text(
    st.one_of(st.sampled_from('"\\{}=,# \n\r\t\x00\x1f\x85\u2028'), st.characters(exclude_categories=["Cs"])), max_size=12
)
VALUES = st.floats() | st.integers(-(10**20), 10**20).map(float)
WANTED = ("kafka_server_.*",)


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
    samples, unreadable = PageParser(WANTED, {}).parse(page)
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
    samples, unreadable = PageParser(WANTED, {}).parse(line.encode())
    assert len(samples) + unreadable == 1
    if not samples:
        return
    ((series, value),) = samples
    ((sample,),) = [family.samples for family in text_string_to_metric_families(line)]
    assert {"__name__": sample.name, **sample.labels} == dict(series.labels)
    assert _shown(float(sample.value)) == _shown(value)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(page: bytes) -> None:
    samples, unreadable = PageParser(WANTED, {}).parse(page)
    assert len(samples) + unreadable <= page.count(b"\n") + 1


def _shown(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)
