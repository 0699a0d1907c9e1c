"""``doctor`` on real ZooKeepers: connection, login, and the rights to read and to write, told apart without a write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE, make_digest_acl, make_digest_acl_credential

from reconciler.features.sandbox.configuration import LOOPBACK, free_ports
from tests.support.certificates import Authority
from tests.support.command import Done, invoke
from tests.support.kafka_tree import everything, make_kafka
from tests.support.zookeeper_server import zookeeper_server
from tests.support.zookeeper_tree import zookeeper_client

pytestmark = pytest.mark.kafka

SUPER = f"-Dzookeeper.DigestAuthenticationProvider.superDigest={make_digest_acl_credential('super', 'super')}"
BROKERS = make_digest_acl("brokers", "s3cret", all=True)
JAAS = 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_quotas="s3cret"; };'


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """One server: below a chroot, without encryption and with it. ``folder`` has the authority."""

    plain: str
    tls: str
    folder: Path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("zookeeper")
    authority = Authority()
    (folder / "ca.pem").write_text(authority.pem)
    (folder / "server.pem").write_text(authority.sign("localhost").pem())
    (folder / "jaas.conf").write_text(JAAS)
    [port] = free_ports(1)
    properties = {
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "secureClientPort": str(port),
        "secureClientPortAddress": LOOPBACK,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(folder / "server.pem"),
        "ssl.trustStore.location": str(folder / "ca.pem"),
        "ssl.clientAuth": "none",
    }
    options = (SUPER, f"-Djava.security.auth.login.config={folder / 'jaas.conf'}")
    with zookeeper_server(properties=properties, java_options=options) as server:
        yield Places(plain=f"{server.address}/one", tls=f"{LOOPBACK}:{port}/one", folder=folder)


@pytest.fixture
def witness(places: Places) -> Iterator[KazooClient]:
    """A client that may do everything, below a chroot with a Kafka's tree."""
    with zookeeper_client(places.plain.partition("/")[0]) as root:
        root.add_auth("digest", "super:super")
        root.create("/one")
        make_kafka(root, "/one")
        root.create("/one/config/users/alice", b'{"version":1,"config":{"producer_byte_rate":"1024"}}')
        with zookeeper_client(places.plain) as client:
            client.add_auth("digest", "super:super")
            yield client
        root.delete("/one", recursive=True)


def doctor(folder: Path, place: str, *properties: str) -> Done:
    (folder / "zk.properties").write_text("\n".join(properties))
    return invoke("doctor", "--zookeeper", place, "--command-config", "zk.properties", "--format", "json", cwd=folder)


def statuses(done: Done) -> dict[str, str]:
    return {check["id"]: check["status"] for check in done.json()["checks"]}


def check(done: Done, name: str) -> str:
    (message,) = [check["message"] for check in done.json()["checks"] if check["id"] == name]
    return str(message)


LOGIN = "zookeeper.sasl.jaas.config=org.apache.zookeeper.server.auth.DigestLoginModule required"


@pytest.mark.parametrize(
    ("acl", "properties", "code", "describe", "alter"),
    [
        ([READ_ACL_UNSAFE[0], BROKERS], (), 0, "pass", "warn"),
        ([READ_ACL_UNSAFE[0], BROKERS], ("zookeeper.auth.digest=brokers:s3cret",), 0, "pass", "pass"),
        ([BROKERS], (), 1, "fail", "skip"),
    ],
    ids=["may read", "digest", "may not read"],
)
def test_reading_and_writing_are_told_apart_and_nothing_is_written(
    acl, properties, code, describe, alter, places, witness, tmp_path
):
    for node in ("/config/users", "/config/users/alice"):
        witness.set_acls(node, acl)
    before = everything(witness)
    done = doctor(tmp_path, places.plain, *properties)

    assert done.code == code, done.out + done.err
    found = statuses(done)
    assert (found["connection"], found["describe"], found["alter"]) == ("pass", describe, alter)
    assert found["brokers"] == "skip"
    assert "4L6g3nShT-eMCtK--X86sw" in check(done, "identity")
    assert everything(witness) == before


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [("no Kafka", "Check which program"), ("password", "Check the login"), ("authority", "Check the trust store")],
)
def test_what_fails_is_named_with_its_remedy(problem, remedy, places, witness, tmp_path):
    place = places.plain
    properties: tuple[str, ...] = ()
    if problem == "no Kafka":
        place = places.plain.partition("/")[0]
    elif problem == "password":
        properties = (f'{LOGIN} username="quotas" password="wr0ng";',)
    else:
        (tmp_path / "other.pem").write_text(Authority("Another Authority").pem)
        place = places.tls
        properties = ("zookeeper.ssl.client.enable=true", "zookeeper.ssl.truststore.location=other.pem")
    done = doctor(tmp_path, place, *properties)

    assert done.code == 1
    (failed,) = [check for check in done.json()["checks"] if check["status"] == "fail"]
    assert (failed["id"], failed["remedy"][: len(remedy)]) == ("connection", remedy)
    assert "wr0ng" not in done.out + done.err


def test_a_connection_over_tls_passes(places, witness, tmp_path):
    properties = ("zookeeper.ssl.client.enable=true", f"zookeeper.ssl.truststore.location={places.folder / 'ca.pem'}")
    done = doctor(tmp_path, places.tls, *properties)

    assert done.code == 0, done.out + done.err
    assert statuses(done)["connection"] == "pass"


def test_leftovers_are_what_no_reassignment_in_kafkas_nodes_needs(places, witness, tmp_path):
    lists = b'{"version":1,"config":{"leader.replication.throttled.replicas":"*"}}'
    rate = b'{"version":1,"config":{"follower.replication.throttled.rate":"1048576","log.cleaner.threads":"2"}}'
    moving = b'{"version":3,"partitions":{"0":[2,1],"1":[4,1]},"adding_replicas":{"0":[2]},"removing_replicas":{}}'
    scram = b'{"version":1,"config":{"SCRAM-SHA-512":"salt="}}'
    nodes = {
        **{f"/config/topics/{topic}": lists for topic in ("left", "moving", "asked")},
        **{f"/config/brokers/{broker}": rate for broker in ("1", "2", "3", "4")},
        "/config/brokers/5": b"not a config",
        "/brokers/topics/left": b'{"version":3,"partitions":{"0":[4]},"adding_replicas":{},"removing_replicas":{}}',
        "/brokers/topics/moving": moving,
        "/brokers/topics/asked": b'{"version":1,"partitions":{"0":[1]}}',
        "/admin/reassign_partitions": b'{"version":1,"partitions":[{"topic":"asked","partition":0,"replicas":[3]}]}',
        "/config/users/bob": scram,
        "/config/users/carol/clients/app": b'{"version":1,"config":{"request_percentage":"5.0"}}',
        "/config/clients/gone": b'{"version":1,"config":{}}',
    }
    for path, data in nodes.items():
        witness.create(path, data, makepath=True)
    done = doctor(tmp_path, places.plain)
    text = check(done, "leftovers")
    assert statuses(done)["leftovers"] == "warn"
    assert "that no running reassignment involves: broker 4 follower 1 MiB/s (since 20" in text
    assert "list throttled replicas: 'left' (since 20" in text
    # alice has quotas, bob credentials only: no user has both.
    assert "SCRAM" not in text
    assert "without any setting: '/config/clients/gone'. They limit no client." in text
    assert "printf '%s\\n' 'delete -v 0 /config/clients/gone' | zookeeper-shell HOST:PORT" in text

    witness.set("/brokers/topics/moving", b"[]")
    text = check(doctor(tmp_path, places.plain), "leftovers")
    assert "in a form that Kafka does not write." in text
    assert "delete -v 0 /config/clients/gone" in text
