"""``kafka-quotas doctor`` as a user runs it, against answers of a Prometheus server and against files."""

from __future__ import annotations

import json
import shlex
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.bad_servers import refusing_port
from tests.support.command import invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import served
from tests.support.schemas import valid

TARGET = {"job": "kafka", "instance": "kafka-1:7071"}
MANIFEST = quotas(({"user": "alice", "client-id": "App"}, {"producer_byte_rate": "1MiB"}))


@contextmanager
def answering(series: Sequence[Mapping[str, str]], every: int = 15, **more: object) -> Iterator[str]:
    """A server whose series have a sample at each multiple of ``every`` seconds."""

    def reply(_: str, __: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        query = dict(urllib.parse.parse_qsl(body.decode()))
        end = float(query["time"])
        length = int(query["query"].rpartition("[")[2].removesuffix("s]"))
        asks_up = query["query"].startswith('{__name__=~"up|')
        times = range(int(end - length) // every * every + every, int(end) + 1, every)
        result = [
            {"metric": labels, "values": [[at, "1"] for at in times]}
            for labels in series
            if (labels["__name__"] == "up") is asks_up
        ]
        document = {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
        return 200, "application/json", json.dumps(document).encode()

    with served(reply) as port:
        yield f"prometheus+http://127.0.0.1:{port}"


def pair(kind: str, sensor: str) -> dict[str, str]:
    return {"__name__": f"kafka_server_{kind}_{sensor}", "user": "alice", "client_id": "App", **TARGET}


EVERYTHING = [
    pair("produce", "byte_rate"),
    pair("fetch", "byte_rate"),
    pair("request", "request_time"),
    pair("controllermutation", "mutation_rate"),
    {"__name__": "up", **TARGET},
]


def test_a_good_server_is_a_table_and_exit_code_0(tmp_path: Path) -> None:
    with answering(EVERYTHING, every=5) as source:
        done = invoke("doctor", "--traffic", source, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[1] == "  Confluent's jmx-monitoring-stacks, Strimzi's metrics-reporter, or rules in lower case: 4 series"
    assert lines[3].split() == ["broker", "exporter", "clients", "shows", "every", "covered"]
    assert lines[4].split(maxsplit=3)[:3] == ["1", "kafka-1:7071", "1"]
    assert lines[4].endswith("5 s    100 %")
    assert lines[-1] == "1 broker, 1 client on them. Nothing to repair."


def test_a_partial_answer_is_a_finding(tmp_path: Path) -> None:
    with answering(EVERYTHING, every=5, warnings=["store-2: timeout"]) as source:
        done = invoke("doctor", "--traffic", source, "--format", "json", cwd=tmp_path)
    (finding,) = json.loads(done.out)["findings"]
    assert (finding["id"], finding["severity"]) == ("partial-answer", "warning")
    assert "store-2: timeout" in finding["message"]


def test_clients_in_metric_names_are_counted_with_rules_that_repair_them(tmp_path: Path) -> None:
    series = [
        {"__name__": "kafka_server_produce_user_alice_client_id_app_byte_rate", **TARGET},
        {"__name__": "kafka_server_produce_user_eve_client_id_x_byte_rate", **TARGET},
    ]
    with answering(series) as source:
        done = invoke("doctor", "--traffic", source, "--format", "json", "--fail-on", "warning", cwd=tmp_path)
        text = invoke("doctor", "--traffic", source, cwd=tmp_path, env={"COLUMNS": "80"})
    document = json.loads(done.out)
    valid(document, "doctor")
    assert ([(one["reason"], one["series"]) for one in document["unattributed"]], done.code) == ([("name-only", 2)], 1)
    assert "  - pattern: kafka.server<type=(\\w+), user=(.+), client-id=(.+)><>([a-z-]+)\n" in text.out
    assert max(map(len, text.out.splitlines())) <= 80


def test_no_series_is_exit_code_1_with_the_command_that_makes_clients_visible(tmp_path: Path) -> None:
    with answering([]) as source:
        done = invoke("doctor", "--traffic", source, "--format", "json", cwd=tmp_path)
    document = json.loads(done.out)
    assert (done.code, [finding["id"] for finding in document["findings"]]) == (1, ["no-client-series"])
    (repair,) = document["repairs"]
    program, command, *options = shlex.split(repair["text"].replace("\\\n", " "))
    assert (program, command, options[0]) == ("kafka-quotas", "alter", "--expose-clients")
    # The command asks the cluster, and gets as far as that.
    done = invoke(command, *options[:1], "--bootstrap-server", f"127.0.0.1:{refusing_port()}", *options[3:], cwd=tmp_path)
    assert (done.code, "no Kafka broker can be reached" in done.err) == (1, True)


PAGE = """
kafka_server_Produce_byte_rate{user="alice",client_id="App"} 5
kafka_server_Produce_throttle_time{user="alice",client_id="App"} NaN
kafka_server_Produce_queue_size 0
kafka_server_fetch_user_eve_client_id_x_byte_rate 7
jvm_threads 5
"""


def test_pages_of_exporters_are_examined(tmp_path: Path) -> None:
    asked = []

    def reply(_: str, headers: dict[str, str], __: bytes) -> tuple[int, str, bytes]:
        asked.append(headers.get("authorization"))
        return 200, "text/plain; version=0.0.4", PAGE.encode()

    (tmp_path / "exporter.login").write_text("authorization: {credentials: s3cret}\n")
    with served(reply) as port:
        page = f"7=metrics+http://127.0.0.1:{port}"
        command = ("doctor", "--traffic", page, "--http-config", "exporter.login")
        done = invoke(*command, "--format", "json", cwd=tmp_path)
        gone = f"8=metrics+http://127.0.0.1:{refusing_port()}"
        part = invoke(*command, "--traffic", gone, "--format", "json", cwd=tmp_path)
    document = json.loads(done.out)
    valid(document, "doctor")
    assert (done.code, document["since"] == document["until"], set(asked)) == (0, True, {"Bearer s3cret"})
    assert {layout["id"] for layout in document["layouts"]} == {"default-format", "name-only"}
    (broker,) = document["brokers"]
    assert (broker["broker"], broker["kinds"], broker["interval_s"], broker["gaps"]) == (7, ["produce"], None, [])
    assert "queue-size" in broker["measures"]
    assert [one["reason"] for one in document["unattributed"]] == ["name-only"]
    assert {"rule-order", "default-pair-quota"} == {repair["id"] for repair in document["repairs"]}
    assert part.code == 1
    assert [one["broker"] for one in json.loads(part.out)["brokers"]] == [7]
    assert "exporter-unreadable" in {finding["id"] for finding in json.loads(part.out)["findings"]}


@pytest.mark.parametrize("changed", ["cluster.yaml", "prometheus.login", "mapping.yaml"])
def test_the_server_login_and_mapping_are_those_of_the_trusted_reference(changed: str, tmp_path: Path) -> None:
    repository, asked = GitRepository(tmp_path / "repository"), []

    def reply(_: str, headers: dict[str, str], __: bytes) -> tuple[int, str, bytes]:
        asked.append(headers["authorization"])
        return 200, "application/json", b'{"status": "success", "data": {"resultType": "matrix", "result": []}}'

    def foreign(*_: object) -> tuple[int, str, bytes]:
        raise AssertionError("the pull request's server was asked")

    mapping = {"apiVersion": "kafka-quotas/v1", "kind": "TrafficMapping", "spec": {"metrics": [{"name": "a", "kind": "produce"}]}}
    with served(reply) as port, served(foreign) as other:
        texts = {
            "cluster.yaml": cluster(traffic={"prometheus": f"http://127.0.0.1:{port}", "httpConfig": "prometheus.login"}),
            "prometheus.login": "basic_auth: {username: a, password: b}\n",
            "mapping.yaml": json.dumps(mapping),
            "kafka-quotas.yaml": "apiVersion: kafka-quotas/v1\nkind: Repository\nspec: {exclude: [mapping.yaml]}\n",
        }
        for name, text in texts.items():
            repository.write(name, text)
        repository.commit()
        repository.branch()
        elsewhere = {
            "cluster.yaml": cluster(traffic={"prometheus": f"http://127.0.0.1:{other}", "httpConfig": "prometheus.login"}),
            "prometheus.login": "authorization: {credentials: x}\n",
            "mapping.yaml": "kind: nonsense\n",
        }
        repository.write(changed, elsewhere[changed])
        repository.commit()
        command = ("doctor", ".", "--trusted-ref", "main", "--mapping", "mapping.yaml", "--format", "json")
        done = invoke(*command, cwd=repository.folder)
    if changed == "prometheus.login":
        assert (done.code, asked, "differs from main" in done.err) == (3, [], True)
    else:
        assert (done.code, bool(asked)) == (1, True), done.err
        assert [one["id"] for one in json.loads(done.out)["findings"]] == ["no-client-series"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--traffic", "prometheus+http://127.0.0.1:1", "--since", "2020-01-01T00:00:00Z"), "longer than 31 days"),
        (("--traffic", "logs"), "For files, use backtest"),
    ],
)
def test_a_time_that_cannot_be_is_a_usage_error(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = invoke("doctor", *arguments, cwd=tmp_path)
    assert (done.code, words in done.err) == (64, True), done.err
