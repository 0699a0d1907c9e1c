"""TLS, logins and ACLs on a real broker: who gets in plans and applies, who does not is told why, and no secret is ever shown."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from reconciler.features.sandbox.java import jvm_command, runtime_for
from reconciler.features.sandbox.spec import Sandbox
from tests.support import manifests, raw_quotas
from tests.support.bad_servers import serving, silent
from tests.support.certificates import Authority, Certified
from tests.support.command import COMMAND, Done, environment, run
from tests.support.polling import wait_until
from tests.support.secured_kafka import MARK, SecuredKafka, login, mutual, oauth, password, secured_kafka, token

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured")) as started:
        yield started


class Runs:
    """Runs the command in a folder with one manifest; whatever it says or writes must not hold a secret."""

    def __init__(self, kafka: SecuredKafka, folder: Path, user: str) -> None:
        self.kafka = kafka
        self.user = user
        self._folder = folder
        self._rate = 1000.0
        (folder / "cluster.yaml").write_text(manifests.cluster(prune="never"))
        self.declare(self._rate)

    def declare(self, rate: float) -> None:
        self._rate = rate
        (self._folder / "quotas.yaml").write_text(manifests.quotas(({"user": self.user}, {"producer_byte_rate": rate})))

    def __call__(self, command: str, listener: str, settings: Mapping[str, str], *extra: str) -> Done:
        servers = self.kafka.sandbox.listeners.get(listener) or self._own(listener)
        file = self.kafka.properties(self.user, settings)
        arguments = (command, ".", "--bootstrap-server", servers, "--command-config", str(file), "-vv", *extra)
        done = run(*arguments, cwd=self._folder, timeout=300)
        written = [path.read_text() for path in self._folder.rglob("*") if path.is_file()]
        jwt = token("anybody").split(".")[0]  # what every token here begins with
        for text in (done.out, done.err, *written):
            assert MARK not in text
            assert jwt not in text
            assert "PRIVATE KEY" not in text
        return done

    def _own(self, listener: str) -> str:
        sandbox = self.kafka.sandbox
        return {"PLAINTEXT": sandbox.bootstrap_servers, "SASL": sandbox.sasl_bootstrap_servers or ""}[listener]

    def holds(self) -> float | None:
        found = raw_quotas.describe(self.kafka.sandbox.bootstrap_servers)
        return found.get(frozenset({("user", self.user)}), {}).get("producer_byte_rate")


@pytest.fixture
def runs(kafka: SecuredKafka, tmp_path: Path, request: pytest.FixtureRequest) -> Runs:
    return Runs(kafka, tmp_path, f"of {request.node.name}")


def said(done: Done) -> str:
    """The one line for the user, below the traceback that -v brings."""
    lines = done.err.rstrip("\n").splitlines()
    assert lines[-1].startswith("kafka-quotas: "), done.err
    assert sum(line.startswith("kafka-quotas: ") for line in lines) == 1, done.err
    return lines[-1]


WAYS = ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "PKCS12", "PKCS12 over TLS 1.2", "inline PEM"]


def way_in(kafka: SecuredKafka, way: str) -> tuple[str, dict[str, str]]:
    """A listener, and the settings of somebody who may write there."""
    certified = kafka.authority.sign("writer")
    ca = kafka.authority.trust_store(MARK)
    if way.startswith("PKCS12"):
        trust = {
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": kafka.store("ca.p12", ca),
            "ssl.truststore.password": MARK,
        }
        return "MUTUAL" if way == "PKCS12" else "MUTUAL_OLD", mutual(kafka, certified, "writer") | trust
    if way.endswith("PEM"):
        return "MUTUAL", pem_texts(kafka, certified)
    if way == "OAUTHBEARER":
        return "LOGIN", oauth(kafka.store("token", token("token-writer") + "\n"))
    return "LOGIN", login(way, "writer" if way == "PLAIN" else "scram-writer")


def pem_texts(kafka: SecuredKafka, certified: Certified) -> dict[str, str]:
    """The settings of a key store in PEM inside the properties file."""
    pem = {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.key.password": MARK}
    trust = {"ssl.truststore.location": "", "ssl.truststore.certificates": kafka.authority.pem}
    return pem | trust | {"ssl.keystore.key": certified.key_pem(MARK), "ssl.keystore.certificate.chain": certified.chain}


@pytest.mark.parametrize("way", WAYS)
def test_every_supported_way_in_plans_and_applies(way, kafka, runs):
    listener, settings = way_in(kafka, way)
    plan = runs("plan", listener, settings, "--detailed-exitcode", "--out", "json=plan.json")
    assert plan.code == 2, plan.err
    assert runs.holds() is None
    applied = runs("apply", listener, settings, "--auto-approve", "--report", "report.json")
    assert applied.code == 0, applied.err
    assert runs.holds() == 1000.0


def test_without_any_right_one_is_told_which_to_grant_and_to_whom(kafka, runs):
    refused = runs("plan", "MUTUAL", mutual(kafka, kafka.authority.sign("stranger"), "stranger"))
    assert refused.code == 1
    assert "--allow-principal User:CN=stranger --operation DescribeConfigs --cluster" in said(refused).replace("'", "")


def test_a_reader_is_told_that_a_local_broker_can_check_a_plan(kafka, runs):
    refused = runs("plan", "LOGIN", login("PLAIN", "reader"), "--server-check=cluster")
    assert refused.code == 1
    assert "AlterConfigs" in refused.err
    assert "--server-check=sandbox" in refused.err


def kafka_acls(sandbox: Sandbox, line: str) -> None:
    """Runs a line for Kafka's own tool, as its shell script would."""
    runtime = runtime_for(sandbox.kafka_version)
    arguments = shlex.split(line.replace("HOST:PORT", sandbox.bootstrap_servers))
    assert arguments.pop(0) == "kafka-acls"
    tool = [
        *jvm_command(runtime, folder=sandbox.folder, temporary=sandbox.folder, heap_mb=128),
        "org.apache.kafka.tools.AclCommand",
    ]
    done = subprocess.run([*tool, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_line_that_is_told_grants_what_is_missing(kafka, runs):
    settings = login("PLAIN", "newcomer")
    refused = said(runs("plan", "LOGIN", settings))
    kafka_acls(kafka.sandbox, refused.split("An administrator can grant it with: ")[1])
    # Brokers learn of an ACL a moment after it was made.
    wait_until(lambda: runs("plan", "LOGIN", settings, "--detailed-exitcode").code == 2)
    refused = runs("apply", "LOGIN", settings, "--auto-approve")
    told = re.search(
        r"An administrator can grant it with: (kafka-acls .*? --cluster)", " ".join((refused.out + refused.err).split())
    )
    assert told, refused
    kafka_acls(kafka.sandbox, told[1])
    wait_until(lambda: runs("apply", "LOGIN", settings, "--auto-approve").code == 0)
    assert runs.holds() == 1000.0


TLS = {"security.protocol": "SSL"}
OTHER_AUTHORITY = Authority("Another Authority")
WRONG = password("nobody")


def not_trusting(kafka: SecuredKafka) -> dict[str, str]:
    return {"ssl.truststore.location": kafka.store("other-ca.pem", OTHER_AUTHORITY.pem)}


def old_token(kafka: SecuredKafka) -> str:
    return kafka.store("old-token", token("token-writer", valid_seconds=-30))


Failure = tuple[str, Callable[[SecuredKafka], dict[str, str]], str]
FAILURES: dict[str, Failure] = {
    "wrong password for PLAIN": (
        "LOGIN",
        lambda _: login("PLAIN", "writer", secret=WRONG),
        "refused the login: .*Invalid username or password",
    ),
    "wrong password for SCRAM-SHA-256": (
        "LOGIN",
        lambda _: login("SCRAM-SHA-256", "scram-writer", secret=WRONG),
        "refused the login: .*invalid credentials",
    ),
    "an expired token": (
        "LOGIN",
        lambda kafka: oauth(old_token(kafka)),
        "refused the login: the server does not accept the token",
    ),
    "a mechanism that the listener has not": (
        "SASL",
        lambda _: login("SCRAM-SHA-256", "scram-writer", protocol="SASL_PLAINTEXT"),
        "refused the login: .*mechanism",
    ),
    "an expired certificate": ("EXPIRED", lambda _: TLS, "TLS with .* failed: the server's certificate has expired"),
    "a certificate for another host": (
        "ELSEWHERE",
        lambda _: TLS,
        "the server's certificate is for another host than '127.0.0.1'",
    ),
    "an authority that is not trusted": (
        "LOGIN",
        lambda kafka: login("PLAIN", "writer") | not_trusting(kafka),
        "from an authority that is not trusted here",
    ),
    "a client certificate that expired": (
        "MUTUAL",
        lambda kafka: mutual(kafka, kafka.authority.sign("writer", expired=True), "expired-writer"),
        r"the server refused our client certificate, which expired on 20\d\d-",
    ),
    "no client certificate": ("MUTUAL", lambda _: TLS, "the server wants a client certificate"),
    "plaintext against TLS": ("MUTUAL", lambda _: {}, "its listener wants TLS or a login"),
    "a login in plaintext against TLS": (
        "LOGIN",
        lambda _: login("PLAIN", "writer", protocol="SASL_PLAINTEXT"),
        "its listener wants TLS: then security.protocol is SASL_SSL",
    ),
    "TLS against plaintext": ("PLAINTEXT", lambda _: TLS, "its listener may have no TLS"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_who_cannot_get_in_is_told_why_in_one_line(name, kafka, runs):
    listener, settings, reason = FAILURES[name]
    failed = runs("apply", listener, settings(kafka), "--auto-approve")
    assert failed.code == 1
    assert failed.out == ""
    assert re.search(reason, said(failed)), said(failed)
    assert runs.holds() is None


def test_a_host_name_that_does_not_fit_can_be_accepted_on_purpose(kafka, runs):
    relaxed = {**TLS, "ssl.endpoint.identification.algorithm": ""}
    refused = runs("plan", "ELSEWHERE", relaxed)
    assert "ANONYMOUS" not in refused.err
    assert refused.code == 0, refused.err


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="only Linux shows every process's command line in files")
def test_no_process_shows_a_secret_while_the_command_runs(kafka, tmp_path):
    """The temporary folder too: the key of the PKCS12 store must not lie there while the command waits."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    connected = threading.Event()

    def waits(connection: socket.socket) -> None:
        connected.set()
        silent(connection)

    file = kafka.properties("waiting", login("PLAIN", "writer") | mutual(kafka, kafka.authority.sign("w"), "w") | SASL_SSL)
    with serving(waits) as port:
        arguments = [
            *COMMAND,
            "export",
            "--snapshot",
            "-",
            "--bootstrap-server",
            f"127.0.0.1:{port}",
            "--command-config",
            str(file),
        ]
        child = subprocess.Popen(
            arguments,
            cwd=tmp_path,
            env=environment({"TMPDIR": str(temporary)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert connected.wait(300)
            shown = {int(folder.name): command_line(folder) for folder in Path("/proc").iterdir() if folder.name.isdigit()}
            left = list(temporary.iterdir())
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=300)
        finally:
            child.kill()
            child.wait()
    assert shown[child.pid]
    assert [pid for pid, line in shown.items() if MARK in line] == []
    assert left == []
    assert MARK not in out + err


def command_line(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_text(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""


SASL_SSL = {"security.protocol": "SASL_SSL"}


def checks(done: Done) -> dict[str, str]:
    return {check["id"]: check["status"] for check in done.json()["checks"]}


def of_cluster(done: Done) -> list[str]:
    found = checks(done)
    return [found[name] for name in ("connection", "identity", "describe", "alter")]


def test_doctor_distinguishes_readers_from_writers_and_writes_nothing(kafka, runs):
    expected = {"writer": (0, ["pass", "pass"]), "reader": (0, ["pass", "warn"]), "stranger": (1, ["fail", "skip"])}
    before = raw_quotas.describe(kafka.sandbox.bootstrap_servers)
    for user, (code, rights) in expected.items():
        done = runs("doctor", "LOGIN", login("PLAIN", user), "--format", "json")
        assert done.code == code, done.err
        statuses = of_cluster(done)
        assert statuses[0] == "pass"
        assert statuses[2:4] == rights
        assert checks(done)["brokers"] == "pass"
        assert "no answer" not in done.out, "a broker answers who has no right to see SCRAM credentials, too"
    assert raw_quotas.describe(kafka.sandbox.bootstrap_servers) == before


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        (lambda kafka: login("PLAIN", "writer", secret=WRONG), "Check the login in the properties file"),
        (lambda kafka: login("PLAIN", "writer") | not_trusting(kafka), "Check the trust store"),
        (lambda _: {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "Correct the properties file"),
    ],
    ids=["password", "authority", "settings"],
)
def test_doctor_names_what_fails_with_a_remedy(settings, remedy, kafka, runs):
    done = runs("doctor", "LOGIN", settings(kafka), "--format", "json")

    assert done.code == 1
    assert of_cluster(done) == ["fail", "skip", "skip", "skip"]
    (failed,) = [check for check in done.json()["checks"] if check["status"] == "fail"]
    assert failed["remedy"].startswith(remedy)
