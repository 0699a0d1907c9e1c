"""Servers that drip, pack a gigabyte into a megabyte, or ask for a day's pause: each answer ends, within bounds."""

from __future__ import annotations

import datetime
import functools
import gzip
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from email.utils import format_datetime

import pytest

from reconciler.errors import TrafficError
from reconciler.features.prometheus import PrometheusApi, TooManySamplesError
from reconciler.features.prometheus.exporter_page import ExporterPage
from reconciler.features.prometheus.metric_answers import AnswerReader, ForeignAnswerError
from tests.support.bad_servers import serving
from tests.support.metrics_exporter import matrix

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n"


def dripping(after: bytes) -> Callable[[socket.socket], None]:
    """Sends a part of an answer at once, then one byte again and again, for as long as somebody reads."""

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(after)
        connection.settimeout(0.05)
        while True:
            connection.sendall(b"x")
            try:
                if not connection.recv(1):
                    return
            except TimeoutError:
                continue

    return handle


@pytest.mark.parametrize("after", [HEAD, b"HTTP/1.1 200 OK\r\nx-drip: "], ids=["the body", "the head"])
def test_an_answer_that_drips_ends_at_its_deadline(after: bytes) -> None:
    with serving(dripping(after)) as port:
        address = f"http://127.0.0.1:{port}"
        slow = r"/api/v1/query (answers too slowly: \d+ bytes in 0\.6 s|does not answer within 0\.4 s)"
        with pytest.raises(TrafficError, match=slow):
            PrometheusApi(address, timeout_s=0.4).range_samples("{}", end_s=1.0, length_s=3600)
        with pytest.raises(TrafficError, match=r"needs longer than 0\.4 s|does not answer within 0\.4 s"):
            ExporterPage(address, timeout_s=0.4).read()


def answering(head: str, body: bytes = b"") -> Callable[[socket.socket], None]:
    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        text = f"HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(text.encode() + body)

    return handle


@pytest.mark.parametrize(
    ("asked", "waits", "words"),
    [
        ("7200", 60.0, "asks for a pause of 2 h: trying again in 60 s"),
        ("7", 7.0, "asks for a pause of 7 s: trying again in 7 s"),
        (format_datetime(datetime.datetime(2999, 1, 1, tzinfo=datetime.UTC), usegmt=True), 60.0, "trying again in 60 s"),
        ("soon", None, None),
        ("-5", None, None),
        ("9" * 400, None, None),
    ],
)
def test_a_wish_for_a_pause_is_followed_for_a_minute_at_most_and_told(asked: str, waits: float | None, words: str | None) -> None:
    waited: list[float] = []
    told: list[str] = []
    with serving(answering(f"429 Too Many Requests\r\nretry-after: {asked}")) as port:
        api = PrometheusApi(f"http://127.0.0.1:{port}", on_wait=told.append, sleep=waited.append)
        with pytest.raises(TrafficError, match="answers with HTTP status 429"):
            api.range_samples("{}", end_s=1.0, length_s=3600)
    assert len(waited) == 5
    assert max(waited) <= 60
    if waits is not None:
        assert set(waited) == {waits}
    if words is not None:
        assert len(told) == 5
        assert words in told[0]


PEAK = """
import resource, sys
from reconciler.errors import TrafficError
from reconciler.features.prometheus import PrometheusApi
from reconciler.features.prometheus.exporter_page import ExporterPage
from reconciler.features.prometheus import AnswerReader, ForeignAnswerError
import pyarrow, pyarrow.csv, numpy
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    if sys.argv[1] == "api":
        AnswerReader().read(PrometheusApi(sys.argv[2], sleep=lambda _: None).range_samples("{}", end_s=1.0, length_s=60))
    else:
        ExporterPage(sys.argv[2]).read()
except (TrafficError, ForeignAnswerError) as error:
    print(str(error))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
MATRIX = b'{"status":"success","data":{"resultType":"matrix","result":['
PACKED = {
    "spaces": ("api", b"", b" " * 100, 4_000_000, "answers with more than 128 MiB"),
    "empty series": ("api", MATRIX, b'{"metric":{},"values":[]},', 4_500_000, "the answer has more than 300,000 series"),
    "one line": ("page", b"", b'kafka_server_quota_tokens{user="a"} 1\n', 6_000_000, "more than 300,000 series"),
}


def packed(begin: bytes, part: bytes, count: int) -> bytes:
    """What many equal parts are when they are packed. Behind a full flush they are packed alike, so one is."""
    pack, many, size = zlib.compressobj(9, wbits=31), count // 10_000, len(part) * 10_000
    first, block = (pack.compress(data) + pack.flush(zlib.Z_FULL_FLUSH) for data in (begin, part * 10_000))
    crc = functools.reduce(lambda crc, _: zlib.crc32(part * 10_000, crc), range(many), zlib.crc32(begin))
    return first + block * many + pack.flush()[:-8] + struct.pack("<II", crc, len(begin) + size * many)


@pytest.mark.bulk
@pytest.mark.parametrize("name", PACKED)
def test_an_answer_of_a_megabyte_never_takes_a_gigabyte(name: str) -> None:
    what, begin, part, count, words = PACKED[name]
    body = packed(begin, part, count)
    assert len(body) < 1_000_000
    head = "200 OK\r\ncontent-encoding: gzip\r\ncontent-type: text/plain"
    with serving(answering(head, body)) as port:
        command = [sys.executable, "-c", PEAK, what, f"http://127.0.0.1:{port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said, peak = done.stdout.splitlines()
    assert words in said
    assert float(peak) < 400, "MB"


def test_answers_whose_parts_are_too_many_are_refused_before_they_are_objects() -> None:
    rate = {"__name__": "kafka_server_produce_byte_rate"}
    for body in (matrix((rate, [(1, "1")] * 500_001)), matrix(({f"l{n}": "" for n in range(10_000)}, [(1, "1")]))):
        with pytest.raises(ForeignAnswerError, match="a series has more than 500,000 samples, or labels that are too long"):
            AnswerReader().read(body)
    assert AnswerReader().read(matrix(warnings=[""] * 100_000)).warnings == ("more warnings than can be shown",)


@pytest.mark.parametrize(
    ("encoding", "body"), [("br", b"x"), ("gzip", b"no gzip"), ("gzip", gzip.compress(b"{}" * 99, mtime=0)[:-4])]
)
def test_an_answer_that_cannot_be_unpacked_is_named(encoding: str, body: bytes) -> None:
    refused = pytest.raises(TrafficError, match="does not answer as Prometheus does")
    with serving(answering(f"200 OK\r\ncontent-encoding: {encoding}", body)) as port, refused:
        PrometheusApi(f"http://127.0.0.1:{port}", sleep=lambda _: None).range_samples("{}", end_s=1.0, length_s=3600)


def test_a_long_answer_at_its_deadline_is_asked_for_in_parts() -> None:
    def endless(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            connection.sendall(b" " * 65536)

    with serving(endless) as port, pytest.raises(TooManySamplesError):
        PrometheusApi(f"http://127.0.0.1:{port}", timeout_s=0.3, most_bytes=1 << 40).range_samples("{}", end_s=1.0, length_s=60)
