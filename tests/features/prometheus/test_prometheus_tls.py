"""A Prometheus server behind TLS that asks for a client certificate, by a real TLS server."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest

from reconciler.errors import TrafficError, UsageError
from reconciler.features.prometheus.server_pages import FetchedSamples, PrometheusRequest, fetch_prometheus
from tests.support.certificates import Authority
from tests.support.metrics_exporter import matrix, served

NOW = datetime.datetime(2025, 11, 18, 12, 30, tzinfo=datetime.UTC)
HOUR = datetime.datetime(2025, 11, 18, 10, tzinfo=datetime.UTC)
LABELS = {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "client_id": "app", "instance": "kafka-1:7071"}


def answer(path: str, _headers: dict[str, str], _body: bytes) -> tuple[int, str, bytes]:
    if not path.endswith("/query"):
        return 404, "text/plain", b""
    return 200, "application/json", matrix((LABELS, [(HOUR.timestamp() + 60, "5000")]))


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


def fetch(folder: Path, port: int, login: str) -> FetchedSamples:
    (folder / "prometheus.login").write_text(login)
    request = PrometheusRequest(
        address=f"https://127.0.0.1:{port}",
        since=HOUR,
        until=HOUR + datetime.timedelta(hours=1),
        store=folder / "store",
        http_config=folder / "prometheus.login",
    )
    return fetch_prometheus(request, now=NOW)


def test_a_client_certificate_from_files_is_shown_to_the_server(tmp_path: Path, authority: Authority) -> None:
    login = "tls_config: {ca_file: ca.pem, cert_file: client.pem, key_file: client.key}\n"
    with served(answer, tls=tls_server(tmp_path, authority)) as port:
        assert fetch(tmp_path, port, login).rows > 0


@pytest.mark.parametrize(
    "login", ["tls_config: {ca_file: ca.pem}\n", "http_headers: {X-Scope-OrgID: {values: [a]}}\n"], ids=["client", "server"]
)
def test_a_certificate_that_is_missing_is_an_error_at_once(login: str, tmp_path: Path, authority: Authority) -> None:
    with (
        served(answer, tls=tls_server(tmp_path, authority)) as port,
        pytest.raises(TrafficError, match="Check tls_config in the file of --http-config"),
    ):
        fetch(tmp_path, port, login)


def test_a_field_of_tls_that_is_not_read_is_refused(tmp_path: Path, authority: Authority) -> None:
    assert authority
    with pytest.raises(UsageError, match="insecure_skip_verify"):
        fetch(tmp_path, 1, "tls_config: {insecure_skip_verify: true}\n")
