"""Reading a metrics server: pages, logins, what is read again, and servers that answer wrongly, in part or not at all."""

from __future__ import annotations

import dataclasses
import datetime
import json
import socket
import ssl
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reconciler.errors import TrafficError, UsageError
from reconciler.features.compacting.compact import compact_traffic
from reconciler.features.prometheus import PrometheusApi, TooManySamplesError
from reconciler.features.prometheus.server_pages import FetchedSamples, fetch_prometheus
from reconciler.ports import NO_PROGRESS, NoProgress
from reconciler.workflows import PrometheusRequest
from tests.support.bad_servers import serving
from tests.support.certificates import Authority
from tests.support.compact_arguments import compact_arguments
from tests.support.gauge_parquet import steady, write_gauges
from tests.support.metrics_exporter import matrix, served

START = datetime.datetime(2026, 11, 20, 8, tzinfo=datetime.UTC)
NOW = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
DOCUMENTED = json.loads(Path(__file__).with_name("documented_answers.json").read_text("utf-8"))["answers"]
ALICE = {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "client_id": "app", "instance": "kafka-1:7071"}


class Server:
    """One sample of each series at the end of each query, and a note of what was asked."""

    def __init__(self, *series: dict[str, str], value: str = "5000000", most_seconds: int = 86_400) -> None:
        self.series, self.value, self.most_seconds = series, value, most_seconds
        self.asked: list[tuple[float, int]] = []
        self.headers: dict[str, str] = {}

    def __call__(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        if not path.endswith("/query"):
            return 404, "text/plain", b"404 page not found"
        fields = urllib.parse.parse_qs(body.decode())
        end, length = float(fields["time"][0]), int(fields["query"][0].rpartition("[")[2].removesuffix("s]"))
        self.headers = headers
        if length > self.most_seconds:
            words = "query processing would load too many samples into memory in query execution"
            return 422, "application/json", json.dumps({"status": "error", "error": words}).encode()
        self.asked.append((end, length))
        return 200, "application/json", matrix(*((one, [(end - length, "9"), (end, self.value)]) for one in self.series))


def request(port: int, store: Path, *, hours: int = 2, http_config: Path | None = None) -> PrometheusRequest:
    until = START + datetime.timedelta(hours=hours)
    return PrometheusRequest(
        address=f"http://127.0.0.1:{port}/prom", since=START, until=until, store=store, http_config=http_config
    )


def rows(files: tuple[Path, ...]) -> list[dict[str, object]]:
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_each_hour_is_a_page_and_the_second_run_reads_none_again(tmp_path: Path) -> None:
    server = Server(ALICE)
    with served(server) as port:
        first = fetch_prometheus(request(port, tmp_path), now=NOW)
        # Two queries are under way at a time, and either may arrive first.
        asked = sorted(server.asked)
        assert [end - length for end, length in asked[1:]] == [end for end, _ in asked[:-1]]
        assert sum(length for _, length in server.asked) == 7200
        server.asked.clear()
        again = fetch_prometheus(request(port, tmp_path, hours=3), now=NOW)
        assert (again.files[:2], again.pages_read) == (first.files, again.files[2:])
        assert sum(length for _, length in server.asked) == 3600
    assert [(row["broker"], row["user"], row["client_id"], row["kind"], row["amount"]) for row in rows(first.files)] == [
        (1, "alice", "app", "produce", 5_000_000)
    ] * first.samples, "a sample at the start of a page belongs to the page before"


def test_a_server_that_limits_samples_is_asked_for_shorter_times(tmp_path: Path) -> None:
    server = Server(ALICE, most_seconds=200)
    with served(server) as port:
        found = fetch_prometheus(request(port, tmp_path, hours=1), now=NOW)
    assert max(length for _, length in server.asked) <= 200
    ends = sorted((end - START.timestamp(), length) for end, length in server.asked)
    assert [end - length for end, length in ends] == [0, *(end for end, _ in ends[:-1])]
    assert len(rows(found.files)) == len(ends)
    with served(Server(ALICE, most_seconds=10)) as port, pytest.raises(TrafficError, match=r"--query\.max-samples"):
        fetch_prometheus(request(port, tmp_path / "b", hours=1), now=NOW)


def test_series_without_a_client_or_a_broker_are_counted_with_the_repair(tmp_path: Path) -> None:
    lost = {"__name__": "kafka_server_produce_user_carol_client_id_app_byte_rate", "instance": "kafka-1:7071"}
    nowhere = {**ALICE, "instance": "10.0.0.7:9404"}
    with served(Server(ALICE, lost, nowhere)) as port:
        found = fetch_prometheus(request(port, tmp_path), now=NOW)
    first, second, *_ = found.notes
    assert first.startswith("The clients of 1 series are unknown, since user and client-id are in the metric name only: kafka_")
    assert second.startswith("1 series have no broker id, for example kafka_server_produce_byte_rate{")
    assert {row["user"] for row in rows(found.files)} == {"alice"}


def test_the_login_comes_from_a_file_and_is_in_no_message(tmp_path: Path) -> None:
    server = Server(ALICE)
    (tmp_path / "token").write_text("s3cret\n")
    config = tmp_path / "http.yaml"
    config.write_text("authorization: {credentials_file: token}\nhttp_headers: {X-Scope-OrgID: {values: [team-a]}}\n")
    with served(server) as port:
        fetch_prometheus(request(port, tmp_path / "store", http_config=config), now=NOW)
    assert (server.headers["authorization"], server.headers["x-scope-orgid"]) == ("Bearer s3cret", "team-a")

    def refuse(path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        return 401, "text/plain", headers["authorization"].encode()

    with served(refuse) as port, pytest.raises(TrafficError, match="HTTP status 401") as refused:
        fetch_prometheus(request(port, tmp_path / "other", http_config=config), now=NOW)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, b"{}", "may not read these metrics"),
        (404, b"no", "This address has no Prometheus API"),
        (200, b"<html>login</html>", "not a Prometheus document"),
        (200, b'{"status": "success", "data": {"resultType": "vector", "result": []}}', "not a matrix"),
        (200, b'{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}}', "cannot be read"),
        (200, matrix(({}, []))[:-9], "not a Prometheus document"),
        (400, b'{"status": "error", "error": "bad \\u202equery"}', r"bad \\u202equery"),
    ],
)
def test_another_answer_is_an_error_with_the_address(tmp_path: Path, status: int, body: bytes, words: str) -> None:
    with served(lambda *_: (status, "text/plain", body)) as port, pytest.raises(TrafficError, match=words) as refused:
        fetch_prometheus(request(port, tmp_path), now=NOW)
    assert f"http://127.0.0.1:{port}/prom" in str(refused.value)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrometheusApi("ftp://host"),
        lambda: PrometheusApi("http://user:word@host"),
        lambda: PrometheusApi("http://host?x=1"),
        lambda: PrometheusApi("http://"),
    ],
)
def test_an_address_that_is_none_or_has_a_login_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as refused:
        make()
    assert "word" not in str(refused.value)


class Interrupted(NoProgress):
    """A person who presses Ctrl-C in the second hour."""

    def count(self, done: float, total: float | None = None, unit: str = "") -> None:
        assert (total, unit) == (3, "hours")
        if done > 1:
            raise KeyboardInterrupt


def test_an_interrupted_run_leaves_whole_pages_and_no_other_file(tmp_path: Path) -> None:
    server = Server(ALICE)
    with served(server) as port:
        with pytest.raises(KeyboardInterrupt) as interrupt:
            fetch_prometheus(request(port, tmp_path, hours=3), now=NOW, progress=Interrupted())
        (kept,) = interrupt.value.__notes__
        assert kept.startswith(f"Whole hours of samples are kept in {tmp_path}")
        assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"2026-11-20T08.parquet"}
        assert len(fetch_prometheus(request(port, tmp_path, hours=3), now=NOW).pages_read) == 2


def test_tenants_have_folders_of_their_own_and_passwords_do_not(tmp_path: Path) -> None:
    folders = []
    with served(Server(ALICE)) as port:
        for number, text in enumerate(
            ("{values: [a]}", "{values: [b]}", "{values: [b], secrets: [x]}", "{values: [b], secrets: [y]}")
        ):
            config = tmp_path / f"{number}.http"
            config.write_text(f"http_headers: {{X-Scope-OrgID: {text}}}\n")
            folders.append(fetch_prometheus(request(port, tmp_path / "store", http_config=config), now=NOW).folder)
    assert folders[0] != folders[1]
    assert folders[1] == folders[2] == folders[3]


def test_compact_refuses_files_of_samples_by_name(tmp_path: Path) -> None:
    write_gauges(tmp_path / "history", {("alice", "app", 1): steady(1000)}, hours=1)
    options = compact_arguments(tmp_path / "history", folder=tmp_path / "totals")
    with pytest.raises(TrafficError, match=r"0000\.parquet: .* rows are rates"):
        compact_traffic(options, progress=NO_PROGRESS)
    assert not list((tmp_path / "totals" / "segments").iterdir())


def test_a_server_that_does_not_answer_in_time_is_asked_for_less() -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(4096):
            pass

    with serving(silent) as port, pytest.raises(TooManySamplesError, match=r"does not answer within 0\.3 s"):
        PrometheusApi(f"http://127.0.0.1:{port}", timeout_s=0.3).range_samples("{}", end_s=1.0, length_s=3600)


def test_an_answer_that_is_cut_in_the_middle_is_asked_for_again(tmp_path: Path) -> None:
    body = matrix((ALICE, [(START.timestamp() + 30, "5000000")]))
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
        found = fetch_prometheus(request(port, tmp_path, hours=1), now=NOW)
    assert (cuts, found.rows > 0) == ([], True)
    assert found.notes == ()


@pytest.mark.parametrize("answer", DOCUMENTED, ids=lambda one: f"{one['server']} {one['meaning']}")
def test_answers_as_their_documentation_has_them(answer: dict[str, Any], tmp_path: Path) -> None:
    body = answer["body"] if isinstance(answer["body"], str) else json.dumps(answer["body"])
    with served(lambda *_: (answer["status"], "application/json", body.encode())) as port:
        if answer["meaning"] == "partial":
            found = fetch_prometheus(request(port, tmp_path, hours=1), now=NOW)
            (note,) = found.notes
            assert str(note).startswith("The server warns that 1 of 1 hours are incomplete: ")
            assert fetch_prometheus(request(port, tmp_path, hours=1), now=NOW).pages_read == found.files, "it is read again"
            return
        kind = TooManySamplesError if answer["meaning"] == "too-much" else TrafficError
        with pytest.raises(kind) as refused:
            PrometheusApi(f"http://127.0.0.1:{port}").range_samples("{}", end_s=1.0, length_s=3600)
    assert f"HTTP status {answer['status']}" in str(refused.value)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Its certificate, and one for the client with its key, are in files."""
    made = Authority()
    client = made.sign("reader")
    for name, text in (("ca.pem", made.pem), ("client.pem", client.chain), ("client.key", client.key_pem())):
        (tmp_path / name).write_text(text)
    return made


def tls_server(folder: Path, authority: Authority) -> ssl.SSLContext:
    own = authority.sign("server")
    (folder / "server.pem").write_text(own.pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "ca.pem")
    return context


def fetch_over_tls(folder: Path, port: int, login: str) -> FetchedSamples:
    (folder / "prometheus.login").write_text(login)
    asked = request(port, folder / "store", http_config=folder / "prometheus.login")
    return fetch_prometheus(dataclasses.replace(asked, address=f"https://127.0.0.1:{port}"), now=NOW)


def test_a_client_certificate_from_files_is_shown_to_the_server(tmp_path: Path, authority: Authority) -> None:
    login = "tls_config: {ca_file: ca.pem, cert_file: client.pem, key_file: client.key}\n"
    with served(Server(ALICE), tls=tls_server(tmp_path, authority)) as port:
        assert fetch_over_tls(tmp_path, port, login).rows > 0


@pytest.mark.parametrize(
    "login", ["tls_config: {ca_file: ca.pem}\n", "http_headers: {X-Scope-OrgID: {values: [a]}}\n"], ids=["client", "server"]
)
def test_a_certificate_that_is_missing_is_an_error_at_once(login: str, tmp_path: Path, authority: Authority) -> None:
    with (
        served(Server(ALICE), tls=tls_server(tmp_path, authority)) as port,
        pytest.raises(TrafficError, match="Check tls_config in the file of --http-config"),
    ):
        fetch_over_tls(tmp_path, port, login)


def test_a_field_of_tls_that_is_not_read_is_refused(tmp_path: Path, authority: Authority) -> None:
    assert authority
    with pytest.raises(UsageError, match="insecure_skip_verify"):
        fetch_over_tls(tmp_path, 1, "tls_config: {insecure_skip_verify: true}\n")
