"""Metrics servers that do not answer, answer in part, or answer as their documentation says."""

from __future__ import annotations

import datetime
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import TrafficError
from reconciler.features.prometheus import PrometheusApi, TooManySamplesError
from reconciler.features.prometheus.server_pages import fetch_prometheus
from reconciler.workflows import PrometheusRequest
from tests.support.bad_servers import serving
from tests.support.metrics_exporter import served

START = datetime.datetime(2026, 11, 20, 8, tzinfo=datetime.UTC)
NOW = START + datetime.timedelta(days=2)
ALICE = {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "client_id": "app", "instance": "kafka-1:7071"}
DOCUMENTED = json.loads(Path(__file__).with_name("documented_answers.json").read_text("utf-8"))["answers"]


def request(port: int, store: Path) -> PrometheusRequest:
    until = START + datetime.timedelta(hours=1)
    return PrometheusRequest(address=f"http://127.0.0.1:{port}", since=START, until=until, store=store)


def matrix(*values: tuple[float, str], **more: object) -> bytes:
    result = [{"metric": ALICE, "values": values}] if values else []
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}, **more}).encode()


def test_a_server_that_does_not_answer_in_time_is_asked_for_less() -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(4096):
            pass

    with serving(silent) as port, pytest.raises(TooManySamplesError, match=r"does not answer within 0\.3 s"):
        PrometheusApi(f"http://127.0.0.1:{port}", timeout_s=0.3).range_samples("{}", end_s=1.0, length_s=3600)


def test_an_answer_that_is_cut_in_the_middle_is_asked_for_again(tmp_path: Path) -> None:
    body = matrix((START.timestamp() + 30, "5000000"))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    cuts = [len(body) // 2]

    def cutting(connection: socket.socket) -> None:
        text = b""
        while b"\r\n\r\n" not in text:
            text += connection.recv(65536)
        if text.startswith(b"GET"):
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            return
        size = int(text.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        while len(text.partition(b"\r\n\r\n")[2]) < size:
            text += connection.recv(65536)
        connection.sendall(head + body[: cuts.pop() if cuts else len(body)])

    with serving(cutting) as port:
        found = fetch_prometheus(request(port, tmp_path), now=NOW)
    assert (cuts, found.rows > 0) == ([], True)
    assert found.notes == ()


@pytest.mark.parametrize("answer", DOCUMENTED, ids=lambda one: f"{one['server']} {one['meaning']}")
def test_answers_as_their_documentation_has_them(answer: dict[str, Any], tmp_path: Path) -> None:
    body = answer["body"] if isinstance(answer["body"], str) else json.dumps(answer["body"])
    with served(lambda *_: (answer["status"], "application/json", body.encode())) as port:
        if answer["meaning"] == "partial":
            found = fetch_prometheus(request(port, tmp_path), now=NOW)
            (note,) = found.notes
            assert str(note).startswith("The server warns that 1 of 1 hours are incomplete: ")
            assert fetch_prometheus(request(port, tmp_path), now=NOW).pages_read == found.files, "it is read again"
            return
        kind = TooManySamplesError if answer["meaning"] == "too-much" else TrafficError
        with pytest.raises(kind) as refused:
            PrometheusApi(f"http://127.0.0.1:{port}").range_samples("{}", end_s=1.0, length_s=3600)
    assert f"HTTP status {answer['status']}" in str(refused.value)


def test_a_partial_answer_is_used_named_and_read_again(tmp_path: Path) -> None:
    partial = [True]

    def reply(*_: object) -> tuple[int, str, bytes]:
        return 200, "application/json", matrix((START.timestamp() + 30, "5000000"), isPartial=partial[0])

    with served(reply) as port:
        first = fetch_prometheus(request(port, tmp_path), now=NOW)
        partial[0] = False
        second = fetch_prometheus(request(port, tmp_path), now=NOW)
        third = fetch_prometheus(request(port, tmp_path), now=NOW)
    assert first.rows == second.rows > 0
    assert "isPartial" in " ".join(map(str, first.notes))
    assert (len(first.pages_read), len(second.pages_read), len(third.pages_read)) == (1, 1, 0)
    assert second.notes == third.notes == ()
