"""An IAM identity without a right, at a scripted broker over TLS: there is no MSK cluster to try it on."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.admin import AlterClientQuotasResponse, DescribeClientQuotasResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from tests.support.bad_servers import ScriptedBroker, serving
from tests.support.certificates import Authority
from tests.support.command import Done, invoke
from tests.support.manifests import quotas

SECRET = "s3cr3t-horse"
IDENTITY = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "eu-central-1"}
REFUSED = 31


class Broker:
    """Takes every login, and refuses to read or to write client quotas as it is told."""

    def __init__(self, folder: Path) -> None:
        self.codes = {"describe": 0, "alter": 0}
        self.port = 0
        authority = Authority()
        (folder / "ca.pem").write_text(authority.pem)
        (folder / "server.pem").write_text(authority.sign("broker").pem())
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "server.pem")
        self._scripted = ScriptedBroker(
            {18: self._versions, 17: self._handshake, 36: self._login, 3: self._metadata, 48: self._describe, 49: self._alter}
        )

    def __call__(self, connection: socket.socket) -> None:
        with self._context.wrap_socket(connection, server_side=True) as encrypted:
            self._scripted(encrypted)

    def _versions(self, _: int) -> Any:
        offered = {18: 3, 17: 1, 36: 2, 3: 9, 48: 1, 49: 1}
        rows = [ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=newest) for key, newest in offered.items()]
        return ApiVersionsResponse(error_code=0, api_keys=rows, throttle_time_ms=0)

    def _handshake(self, _: int) -> Any:
        return SaslHandshakeResponse(error_code=0, mechanisms=["AWS_MSK_IAM"])

    def _login(self, _: int) -> Any:
        answer = json.dumps({"version": "2020_10_22", "request-id": "r"}).encode()
        return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=answer, session_lifetime_ms=0)

    def _metadata(self, _: int) -> Any:
        node = MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port, rack=None)
        return MetadataResponse(throttle_time_ms=0, brokers=[node], cluster_id="its-id", controller_id=1, topics=[])

    def _describe(self, _: int) -> Any:
        code = self.codes["describe"]
        return DescribeClientQuotasResponse(throttle_time_ms=0, error_code=code, error_message="no", entries=None if code else [])

    def _alter(self, _: int) -> Any:
        entry = AlterClientQuotasResponse.EntryData
        entity = [entry.EntityData(entity_type="user", entity_name="alice")]
        answered = entry(error_code=self.codes["alter"], error_message="no", entity=entity)
        return AlterClientQuotasResponse(throttle_time_ms=0, entries=[answered])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"})))
    (tmp_path / "client.properties").write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\n"
        "sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={tmp_path / 'ca.pem'}\n"
    )
    with serving(made) as port:
        made.port = port
        yield made


def call(folder: Path, broker: Broker, *arguments: str) -> Done:
    access = ("--bootstrap-server", f"127.0.0.1:{broker.port}", "--command-config", "client.properties")
    done = invoke(*arguments, *access, cwd=folder, env=IDENTITY)
    assert SECRET not in done.out + done.err
    return done


def test_without_the_right_to_describe_a_plan_names_the_action_of_the_policy(broker, tmp_path):
    broker.codes["describe"] = REFUSED
    refused = call(tmp_path, broker, "plan", ".")

    assert (refused.code, refused.out) == (1, "")
    assert "kafka-cluster:DescribeClusterDynamicConfiguration" in refused.err
    assert "kafka-acls" not in refused.err


def test_without_the_right_to_alter_an_apply_names_the_action_of_the_policy(broker, tmp_path):
    broker.codes["alter"] = REFUSED
    refused = call(tmp_path, broker, "apply", ".", "--auto-approve")

    assert refused.code == 1
    assert "kafka-cluster:AlterClusterDynamicConfiguration" in refused.out + refused.err
    assert "kafka-acls" not in refused.out + refused.err
