"""A user's quotas and credentials share one node: neither is lost while both change, whoever writes them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
from reconciler.features.sandbox.spec import Listener, Sandbox, SandboxSpec
from reconciler.model.plan import Alteration
from tests.builders import pair, user
from tests.support import zookeeper_tree
from tests.support.secured_kafka import SCRAM
from tests.support.zookeeper_session import zookeeper_cluster

pytestmark = pytest.mark.kafka

KEY = "producer_byte_rate"
NODE = "/config/users/sam"

CHANGE_PASSWORD = """
import sys, time
from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion
servers, mechanism, *passwords = sys.argv[1:]
client = KafkaAdminClient(bootstrap_servers=servers)
for password in passwords:
    credential = UserScramCredentialUpsertion("sam", ScramMechanism[mechanism], password, iterations=4096)
    assert not any(client.alter_user_scram_credentials([credential]).values())
    time.sleep(0.2)
client.close()
"""


@pytest.fixture(scope="module")
def scram_sandbox() -> Iterator[Sandbox]:
    from reconciler.features.sandbox.cluster import running

    login = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
    }
    listener = Listener(name="LOGIN", protocol="SASL_PLAINTEXT", properties=login)
    with running(SandboxSpec(zookeeper=True, heap_mb=400, listeners=(listener,))) as sandbox:
        yield sandbox


@pytest.fixture
def cluster(scram_sandbox: Sandbox) -> Iterator[ZooKeeperCluster]:
    with zookeeper_cluster(scram_sandbox.zookeeper or "") as found:
        yield found


def set_passwords(sandbox: Sandbox, mechanism: str, *passwords: str) -> subprocess.Popen[bytes]:
    """Another process changes the password of the user sam, one after the other."""
    return subprocess.Popen([sys.executable, "-c", CHANGE_PASSWORD, sandbox.bootstrap_servers, mechanism, *passwords])


def log_in(sandbox: Sandbox, mechanism: str, password: str) -> None:
    """Fails when the broker does not take the password."""
    from kafka import KafkaAdminClient

    KafkaAdminClient(
        bootstrap_servers=sandbox.listeners["LOGIN"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism.replace("_", "-"),
        sasl_plain_username="sam",
        sasl_plain_password=password,
    ).close()


def config(nodes: zookeeper_tree.KazooClient) -> dict[str, str]:
    found: dict[str, str] = json.loads(nodes.get(NODE)[0])["config"]
    return found


def test_the_last_quota_goes_and_the_credential_stays(scram_sandbox: Sandbox, cluster: ZooKeeperCluster) -> None:
    assert set_passwords(scram_sandbox, "SCRAM_SHA_512", "stays").wait(300) == 0
    with zookeeper_tree.zookeeper_client(scram_sandbox.zookeeper or "") as nodes:
        cluster.alter([Alteration(entity=user("sam"), ops={KEY: None})], validate_only=False)
        before = config(nodes)
        both = [Alteration(entity=entity, ops={KEY: 1e6}) for entity in (user("sam"), pair("sam", "app"))]
        assert [result.error_code for result in cluster.alter(both, validate_only=False)] == [0, 0]
        gone = [Alteration(entity=entity, ops={KEY: None}) for entity in (user("sam"), pair("sam", "app"))]
        assert [result.error_code for result in cluster.alter(gone, validate_only=False)] == [0, 0]

        assert config(nodes) == before
    log_in(scram_sandbox, "SCRAM_SHA_512", "stays")
    assert cluster.current_state().entities == {}
