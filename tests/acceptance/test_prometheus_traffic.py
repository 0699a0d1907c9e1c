"""The commands that read a metrics server, with answers as those of Prometheus, Thanos, Mimir and VictoriaMetrics."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import served

TIMES = ("--since", "2026-11-20T08:30:00Z", "--until", "2026-11-20T09:30:00Z")
LABELS = {"__name__": "kafka_server_produce_byte_rate", "user": "alice", "client_id": "app", "instance": "kafka-1:7071"}
QUOTAS = quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"}))


class MetricsServer:
    """Samples each 15 s; it keeps what was asked."""

    def __init__(self, labels: dict[str, str] = LABELS, **more: Any) -> None:
        self.labels, self.more = labels, more
        self.paths: list[str] = []
        self.queries: list[str] = []
        self.headers: list[dict[str, str]] = []

    def __call__(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        if not body:
            return 404, "text/plain", b"this server shows no configuration"
        fields = urllib.parse.parse_qs(body.decode())
        query, end = fields["query"][0], int(float(fields["time"][0]))
        length = int(query.rpartition("[")[2].removesuffix("s]"))
        self.paths.append(path)
        self.queries.append(query)
        self.headers.append(headers)
        values = [[at, "5e+06" if at % 60 == 0 else "12.5"] for at in range(end - length, end + 1) if at % 15 == 0]
        document = {"status": "success", "isPartial": False, **self.more}
        document["data"] = {"resultType": "matrix", "result": [{"metric": self.labels, "values": values}]}
        return 200, "application/json", json.dumps(document, separators=(",", ":")).encode()


def write(folder: Path, **spec: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "cluster.yaml").write_text(cluster(**spec))
    (folder / "quotas.yaml").write_text(QUOTAS)
    return folder


@pytest.mark.parametrize(
    ("path", "tenant", "more"),
    [
        ("", {}, {}),
        ("/prometheus", {"X-Scope-OrgID": {"values": ["team-a"]}}, {}),  # Mimir
        ("/select/0/prometheus", {}, {"stats": {"seriesFetched": "1"}}),  # VictoriaMetrics
        ("/thanos", {"THANOS-TENANT": {"values": ["team-a"]}}, {"warnings": ["receive series from Addr: store-2: timeout"]}),
    ],
)
def test_servers_that_answer_like_prometheus_give_a_verdict(
    path: str, tenant: dict[str, Any], more: dict[str, Any], tmp_path: Path
) -> None:
    server = MetricsServer(**more)
    manifests = write(tmp_path / "quotas")
    (tmp_path / "http.yaml").write_text(json.dumps({"http_headers": tenant}))
    with served(server) as port:
        command = (
            "backtest",
            str(manifests),
            "--traffic",
            f"prometheus+http://127.0.0.1:{port}{path}",
            *TIMES,
            "--format",
            "json",
        )
        done = invoke(
            *command, "--match", 'cluster="prod"', "--http-config", "http.yaml", "--traffic-store", "store", cwd=tmp_path
        )
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert [row["verdict"] for row in document["verdicts"]] == ["throttled"]
    assert set(server.paths) == {f"{path}/api/v1/query"}
    assert all(',cluster="prod"}[' in query for query in server.queries)
    for name, fields in tenant.items():
        assert isinstance(fields, dict)
        assert {headers[name.lower()] for headers in server.headers} == {"team-a"}
    assert ("store-2: timeout" in json.dumps(document["notes"])) == bool(more.get("warnings"))
    start, end = (document["provenance"][name] for name in ("from", "to"))
    assert (start[:19], end[:19]) == ("2026-11-20T08:30:15", "2026-11-20T09:30:00"), "exactly the time that was asked for"


def test_the_cluster_manifest_names_the_server_and_compact_keeps_its_samples(tmp_path: Path) -> None:
    server = MetricsServer()
    with served(server) as port:
        address = f"http://127.0.0.1:{port}"
        traffic = {"prometheus": address, "httpConfig": "prometheus.login", "match": ['cluster="prod"'], "days": 2}
        manifests = write(tmp_path / "quotas", traffic=traffic)
        (manifests / "prometheus.login").write_text("authorization: {credentials: s3cret}\n")
        done = invoke("backtest", str(manifests), *TIMES, "--traffic-store", "store", "--format", "json", cwd=tmp_path)
        assert done.code == 0, done.err
        assert {headers["authorization"] for headers in server.headers} == {"Bearer s3cret"}
        assert all(',cluster="prod"}[' in query for query in server.queries)
        compact = ("compact", "--traffic", f"prometheus+{address}", *TIMES, "--folder", "history")
        first, second = (invoke(*compact, cwd=tmp_path) for _ in range(2))
    assert first.out.startswith("Read 480 samples in 2 hours into history.")
    assert "Read 0 samples in 0 hours into history.\n2 hours had been read before and are complete." in second.out
    again = invoke("backtest", str(manifests), "--traffic", "history", "--format", "json", cwd=tmp_path)
    assert [row["verdict"] for row in json.loads(again.out)["verdicts"]] == ["throttled"], again.err


def test_clients_in_metric_names_are_unknown_and_the_message_names_the_repair(tmp_path: Path) -> None:
    labels = {"__name__": "kafka_server_produce_user_big_alice_client_id_app_1_byte_rate", "instance": "kafka-1:7071"}
    default = {"user": {"default": True}, "client-id": {"default": True}}
    manifests = write(tmp_path / "quotas")
    (manifests / "quotas.yaml").write_text(quotas((default, {"producer_byte_rate": "1MiB"})))
    with served(MetricsServer(labels=labels)) as port:
        source = f"prometheus+http://127.0.0.1:{port}"
        command = ("backtest", str(manifests), "--traffic", source, *TIMES, "--traffic-store", "store", "--format", "json")
        unknown = invoke(*command, cwd=tmp_path)
    assert unknown.code == 1
    assert f"http://127.0.0.1:{port} has no sample of a known client from 2026-11-20 08:30 to 2026-11-20 09:30" in unknown.err
    assert "The clients of 1 series are unknown" in unknown.err
    assert f"kafka-quotas doctor --traffic prometheus+http://127.0.0.1:{port}" in unknown.err


def test_without_any_traffic_the_command_says_where_to_name_it(tmp_path: Path) -> None:
    done = invoke("backtest", str(write(tmp_path / "quotas")), cwd=tmp_path)
    assert done.code == 64
    assert "Pass --traffic, or set spec.traffic of the Cluster manifest" in done.err


@pytest.mark.parametrize("changed", ["cluster.yaml", "prometheus.login"])
def test_a_pull_request_cannot_send_the_login_elsewhere(changed: str, tmp_path: Path) -> None:
    trusted, foreign = MetricsServer(), MetricsServer()
    repository = GitRepository(tmp_path / "repository")
    with served(trusted) as port, served(foreign) as other:
        traffic = {"prometheus": f"http://127.0.0.1:{port}", "httpConfig": "prometheus.login"}
        repository.write("cluster.yaml", cluster(traffic=traffic))
        repository.write("quotas.yaml", QUOTAS)
        repository.write("prometheus.login", "basic_auth: {username: a, password: b}\n")
        repository.commit()
        repository.branch()
        elsewhere = cluster(traffic={**traffic, "prometheus": f"http://127.0.0.1:{other}"})
        repository.write(changed, elsewhere if changed == "cluster.yaml" else "authorization: {credentials: x}\n")
        repository.commit()
        done = invoke(
            "backtest", ".", "--trusted-ref", "main", *TIMES, "--traffic-store", str(tmp_path / "store"), "--format", "json",
            cwd=repository.folder,
        )  # fmt: skip
    assert foreign.headers == []
    if changed == "prometheus.login":
        assert done.code == 3
        assert trusted.headers == []
        assert "'prometheus.login' differs from main" in done.err
    else:
        assert done.code == 0, done.err
        assert trusted.headers
        assert "traffic of the Cluster manifest" in json.dumps(json.loads(done.out)["notes"])
