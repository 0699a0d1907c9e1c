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
    (folder / "server.pem").write_text(authority.sign("localhost", days=10).pem())
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
    assert (found["connection"], found["login"], found["describe"], found["alter"]) == ("pass", "pass", describe, alter)
    assert (found["tls"], found["brokers"], found["certificates"], found["callback"]) == ("skip",) * 4
    assert "4L6g3nShT-eMCtK--X86sw" in check(done, "identity")
    assert everything(witness) == before


@pytest.mark.parametrize(("problem", "failed"), [("no Kafka", "connection"), ("password", "login"), ("authority", "tls")])
def test_the_step_that_fails_is_named(problem, failed, places, witness, tmp_path):
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
    assert [name for name, status in statuses(done).items() if status == "fail"] == [failed]
    assert "wr0ng" not in done.out + done.err


def test_over_tls_the_servers_certificate_is_judged(places, witness, tmp_path):
    properties = ("zookeeper.ssl.client.enable=true", f"zookeeper.ssl.truststore.location={places.folder / 'ca.pem'}")
    done = doctor(tmp_path, places.tls, *properties)

    assert done.code == 0, done.out + done.err
    assert (statuses(done)["tls"], statuses(done)["certificates"]) == ("pass", "warn")
    assert f"server {places.tls.partition('/')[0]} on 20" in check(done, "certificates")
