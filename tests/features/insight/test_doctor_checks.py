"""``kafka-quotas doctor`` without a source of traffic: checks of manifests and cluster, each with a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.bad_servers import ScriptedBroker, refusing_port, serving
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.metrics_exporter import matrix, served
from tests.support.schemas import valid

MANIFEST = quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"}))


def checks(done: Done) -> dict[str, str]:
    document = done.json()
    valid(document, "checkup")
    return {check["id"]: check["status"] for check in document["checks"]}


def message(done: Done, name: str) -> tuple[str, str | None]:
    (check,) = [check for check in done.json()["checks"] if check["id"] == name]
    return check["message"], check["remedy"]


def test_in_an_empty_folder_every_check_is_skipped(tmp_path):
    done = invoke("doctor", "--format", "json", cwd=tmp_path)

    assert done.code == 0, done.err
    assert set(checks(done).values()) == {"skip"}
    assert "Pass --bootstrap-server" in str(message(done, "connection")[1])


def test_a_cluster_by_its_name_that_is_away_fails_and_the_rest_is_skipped(tmp_path):
    port = refusing_port()
    (tmp_path / "prod.yaml").write_text(cluster("prod", connection={"bootstrapServers": [f"127.0.0.1:{port}"]}))
    (tmp_path / "stage.yaml").write_text(cluster("stage"))
    (tmp_path / "quotas.yaml").write_text(MANIFEST)
    done = invoke("doctor", "prod", "--format", "json", cwd=tmp_path)

    assert done.code == 1, done.err
    found = checks(done)
    assert (found["manifests"], found["connection"]) == ("pass", "fail")
    assert {found[name] for name in ("identity", "brokers", "describe", "alter")} == {"skip"}
    assert f"127.0.0.1:{port}: connection refused" in message(done, "connection")[0]
    assert done.json()["cluster"] == "prod"
    assert done.json()["summary"]["fail"] == 1


@contextmanager
def answering(alter_code: int, *, others: tuple[int, ...] = ()) -> Iterator[int]:
    """The port of a broker that answers what doctor asks, and validates changes with this code.

    ``others``: the ports that its other brokers advertise.
    """
    from kafka.protocol.admin import AlterClientQuotasResponse, DescribeClientQuotasResponse
    from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

    ports: list[int] = []

    def api_versions(_: int) -> Any:
        offered = {18: 3, 3: 9, 48: 1, 49: 1}
        rows = [ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=newest) for key, newest in offered.items()]
        return ApiVersionsResponse(error_code=0, api_keys=rows, throttle_time_ms=0)

    def metadata(_: int) -> Any:
        nodes = [
            MetadataResponse.MetadataResponseBroker(node_id=number, host="127.0.0.1", port=port, rack=None)
            for number, port in enumerate((ports[0], *others), start=1)
        ]
        return MetadataResponse(throttle_time_ms=0, brokers=nodes, cluster_id="its-id", controller_id=1, topics=[])

    def describe(_: int) -> Any:
        return DescribeClientQuotasResponse(throttle_time_ms=0, error_code=0, error_message=None, entries=[])

    def alter(_: int) -> Any:
        entry = AlterClientQuotasResponse.EntryData
        entity = [entry.EntityData(entity_type="user", entity_name="kafka-quotas-doctor")]
        return AlterClientQuotasResponse(
            throttle_time_ms=0, entries=[entry(error_code=alter_code, error_message=None, entity=entity)]
        )

    with serving(ScriptedBroker({18: api_versions, 3: metadata, 48: describe, 49: alter})) as port:
        ports.append(port)
        yield port


@pytest.mark.parametrize(("alter_code", "status", "code"), [(0, "pass", 0), (31, "warn", 0), (44, "fail", 1)])
def test_the_rights_to_read_and_to_write_are_distinguished(alter_code, status, code, tmp_path):
    with answering(alter_code) as port:
        done = invoke("doctor", "--bootstrap-server", f"127.0.0.1:{port}", "--format", "json", cwd=tmp_path)

    found = checks(done)
    assert (done.code, found["describe"], found["alter"]) == (code, "pass", status), done.out
    assert (found["connection"], found["identity"]) == ("warn", "pass")
    assert (status == "warn") == ("--operation AlterConfigs --cluster" in message(done, "alter")[0])


def test_a_broker_that_cannot_be_reached_where_it_advertises_itself_is_named(tmp_path):
    away = refusing_port()
    with answering(0, others=(away,)) as port:
        done = invoke("doctor", "--bootstrap-server", f"127.0.0.1:{port}", "--format", "json", cwd=tmp_path)

    found = checks(done)
    assert (done.code, found["connection"], found["brokers"], found["describe"]) == (1, "warn", "fail", "pass"), done.out
    text, remedy = message(done, "brokers")
    assert text.startswith(f"1 of 2 brokers cannot be used. broker 2 at 127.0.0.1:{away}: ")
    assert "advertised.listeners" in str(remedy)


@pytest.mark.parametrize(("expected", "status"), [("its-id", "pass"), ("another-id", "fail"), (None, "warn")])
def test_the_cluster_that_answers_is_compared_with_the_id_in_the_manifest(expected, status, tmp_path):
    with answering(0) as port:
        known = {} if expected is None else {"clusterId": expected}
        (tmp_path / "prod.yaml").write_text(cluster("prod", connection={"bootstrapServers": [f"127.0.0.1:{port}"]}, **known))
        done = invoke("doctor", "prod", "--format", "json", cwd=tmp_path)

    assert checks(done)["identity"] == status
    text, _ = message(done, "identity")
    if status == "fail":
        assert "its-id" in text
    else:
        assert re.match(r"Kafka \d+\.\d+, 1 broker, cluster id its-id\.( |$)", text), text


def test_manifests_with_errors_fail_with_the_first_one_and_its_place(tmp_path):
    (tmp_path / "quotas.yaml").write_text(MANIFEST.replace("producer_byte_rate", "producer_byterate"))
    done = invoke("doctor", "--format", "json", cwd=tmp_path)

    assert done.code == 1
    assert checks(done)["manifests"] == "fail"
    text, remedy = message(done, "manifests")
    assert "quotas.yaml:" in text
    assert remedy == "Look at all of them with: kafka-quotas validate ."


def test_a_metrics_server_without_series_of_clients_fails(tmp_path):
    with served(lambda *_: (200, "application/json", matrix())) as port:
        (tmp_path / "prod.yaml").write_text(cluster("prod", traffic={"prometheus": f"http://127.0.0.1:{port}"}))
        done = invoke("doctor", "--format", "json", cwd=tmp_path)

    assert (done.code, checks(done)["series"]) == (1, "fail")
    assert "makes brokers measure every client" in str(message(done, "series")[1])
