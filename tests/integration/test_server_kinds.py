"""Servers that are no broker with quotas: what they are is named, and what serves instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import javaproperties
import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.bad_servers import ScriptedBroker, serving
from tests.support.command import invoke

API_VERSIONS, METADATA = 18, 3
OF_2_5_1 = {
    0: 8, 1: 11, 2: 5, 3: 9, 4: 4, 5: 2, 6: 6, 7: 3, 8: 8, 9: 7, 10: 3, 11: 7, 12: 4, 13: 4, 14: 5, 15: 5, 16: 3, 17: 1, 18: 3,
    19: 5, 20: 4, 21: 1, 22: 3, 23: 3, 24: 1, 25: 1, 26: 1, 27: 0, 28: 3, 29: 2, 30: 2, 31: 2, 32: 2, 33: 1, 34: 1, 35: 1, 36: 2,
    37: 2, 38: 2, 39: 2, 40: 2, 41: 2, 42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 47: 0,
}  # fmt: skip
"""The newest version of each request that a broker of Kafka 2.5.1 offers."""


@contextmanager
def broker(offered: Mapping[int, int]) -> Iterator[str]:
    """A server with these requests; it answers those about itself."""
    from kafka.protocol.admin import DescribeConfigsResponse
    from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

    ports: list[int] = []

    def api_versions(_version: int) -> Any:
        row = ApiVersionsResponse.ApiVersion
        rows = [row(api_key=key, min_version=0, max_version=newest) for key, newest in offered.items()]
        return ApiVersionsResponse(error_code=0, api_keys=rows, throttle_time_ms=0)

    def metadata(_version: int) -> Any:
        node = MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=ports[0], rack=None)
        return MetadataResponse(throttle_time_ms=0, brokers=[node], cluster_id="old", controller_id=1, topics=[])

    def configs(_version: int) -> Any:
        return DescribeConfigsResponse(throttle_time_ms=0, results=[])

    with serving(ScriptedBroker({API_VERSIONS: api_versions, METADATA: metadata, 32: configs})) as port:
        ports.append(port)
        yield f"127.0.0.1:{port}"


def failures(address: str, cwd: Path) -> list[tuple[str, str, str]]:
    """The failed checks of doctor: id, message, remedy."""
    document = invoke("doctor", "--bootstrap-server", address, "--format", "json", cwd=cwd).json()
    return [(one["id"], one["message"], one["remedy"]) for one in document["checks"] if one["status"] == "fail"]


def said(address: str, cwd: Path) -> str:
    done = invoke("describe", "--bootstrap-server", address, cwd=cwd)
    assert done.code == 1
    return done.err


def test_a_broker_from_before_the_quota_api_is_sent_to_its_zookeeper(tmp_path: Path) -> None:
    with broker(OF_2_5_1) as address:
        ((check, message, remedy),) = failures(address, tmp_path)
        described = said(address, tmp_path)

    assert check == "describe"
    assert message == (
        f"{address} has no API for client quotas (DescribeClientQuotas), which Kafka has since 2.6, and offers the requests "
        "of Kafka 2.5"
    )
    assert remedy == "Kafka before 2.8 keeps quotas in ZooKeeper. Pass --zookeeper HOST:PORT in place of --bootstrap-server"
    assert described == f"kafka-quotas: {message}. {remedy}\n"


@pytest.mark.kafka
def test_the_listener_of_a_controller_is_named_and_a_broker_beside_it_is_used(kafka_sandbox: Sandbox, tmp_path: Path) -> None:
    settings = javaproperties.loads((kafka_sandbox.folder / "node-1" / "server.properties").read_text("utf-8"))
    controller = settings["listeners"].rpartition("CONTROLLER://")[2].partition(",")[0]

    ((check, message, remedy),) = failures(controller, tmp_path)
    described = said(controller, tmp_path)
    both = invoke("describe", "--bootstrap-server", f"{controller},{kafka_sandbox.bootstrap_servers}", cwd=tmp_path)

    assert check == "connection"
    assert message == f"{controller} is the listener of a KRaft controller, which shows neither brokers nor quotas"
    assert remedy == "Pass the address of a broker: one of its advertised.listeners"
    assert described == f"kafka-quotas: {message}. {remedy}\n"
    assert both.code == 0, both.err
