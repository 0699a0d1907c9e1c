"""``alter --for`` as a user runs it: the value on the cluster, its expiry in the manifest, and refusals that leave both alone."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import cluster

pytestmark = pytest.mark.kafka

MIB = 2.0**20
ALICE = frozenset({("user", "alice")})
TEXT = """\
# The quotas of the team.
apiVersion: kafka-quotas/v1
kind: ClientQuotas
spec:
  quotas:
    - match: {user: alice}   # the batch
      quotas:
        consumer_byte_rate: 5MiB
        producer_byte_rate: '10MiB'   # agreed in May
    - match: {user: [bob, carol]}
      quotas: {producer_byte_rate: 3MiB}
    - match: {user: dave}
      quotas: {producer_byte_rate: {value: 3MiB, until: 2999-12-01}}
"""


class Team:
    def __init__(self, folder: Path, kafka: Sandbox) -> None:
        self.folder = folder
        self.server = kafka.bootstrap_servers
        self.file = folder / "quotas" / "quotas.yaml"
        self.file.parent.mkdir()
        (self.file.parent / "cluster.yaml").write_text(cluster(prune="never"))
        self.file.write_text(TEXT)

    def alter(self, *arguments: str, path: str = "quotas", user: str = "alice", length: str = "2h") -> Done:
        paths = [path] if path else []
        options = ("--bootstrap-server", self.server, "--name", f"user={user}", "--for", length, "--auto-approve")
        return invoke("alter", *paths, *options, *(arguments or ("--add", "producer_byte_rate=40MiB")), cwd=self.folder)

    def live(self) -> float | None:
        return raw_quotas.settled(self.server).get(ALICE, {}).get("producer_byte_rate")


@pytest.fixture
def team(tmp_path: Path, clean_kafka: Sandbox) -> Team:
    return Team(tmp_path, clean_kafka)


def test_the_value_is_live_and_the_manifest_takes_it_back(team: Team) -> None:
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    done = team.alter()

    assert (done.code, team.live()) == (0, 40 * MIB), done
    written = team.file.read_text()
    match = re.search(r"\{value: 40MiB, until: (\S+), then: 10MiB\}   # agreed in May", written)
    assert match, written
    until = datetime.datetime.fromisoformat(match[1])
    assert before + datetime.timedelta(hours=2) <= until <= datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=2)
    assert re.sub(r"\{value: 40MiB[^}]*\}", "'10MiB'", written) == TEXT
    assert "quotas/quotas.yaml:9:29 declares producer_byte_rate as 40MiB until" in done.err
    assert invoke("validate", "quotas", cwd=team.folder).code == 0

    again = team.alter()
    assert (again.code, "expires already" in again.err) == (64, True)

    team.file.write_text(written.replace(match[1], "2020-12-01"))
    applied = invoke("apply", "quotas", "--bootstrap-server", team.server, "--auto-approve", cwd=team.folder)
    assert (applied.code, team.live()) == (0, 10 * MIB)


@pytest.mark.parametrize(
    ("user", "arguments", "words"),
    [
        ("bob", ("--add", "producer_byte_rate=40MiB"), "1 other entity shares the value: user=carol"),
        ("dave", ("--add", "producer_byte_rate=40MiB"), "expires already, on 2999-12-01"),
        ("erin", ("--add", "producer_byte_rate=40MiB"), "no manifest declares producer_byte_rate for user=erin"),
        ("alice", ("--add", "request_percentage=50"), "no manifest declares request_percentage for user=alice"),
        ("alice", ("--delete", "producer_byte_rate"), "--for sets values for a while"),
    ],
)
def test_what_no_manifest_could_take_back_is_refused(team: Team, user: str, arguments: tuple[str, ...], words: str) -> None:
    done = team.alter(*arguments, user=user)

    assert (done.code, words in done.err) == (64, True), done
    assert (team.file.read_text(), team.live()) == (TEXT, None)


def test_a_refused_write_leaves_the_manifest_alone(team: Team) -> None:
    raw_quotas.alter(team.server, {ALICE: {"producer_byte_rate": 400 * MIB}})
    raw_quotas.settled(team.server)
    done = team.alter()

    assert (done.code, "large-reduction" in done.out + done.err) == (3, True), done
    assert (team.file.read_text(), team.live()) == (TEXT, 400 * MIB)


SHARED = """\
# The quotas of the team.
apiVersion: kafka-quotas/v1
kind: ClientQuotas
spec:
  quotas:
    - match: {user: bob}
      quotas: {producer_byte_rate: 3MiB}
ALICE
    - match: {user: carol}
      quotas: {producer_byte_rate: 3MiB}
"""
OVERRIDE = r"{clusters: [prod], quotas: {producer_byte_rate: {value: 40MiB, until: UNTIL}}}"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "    - match: {user: alice}   # the batch\n      quotas:\n        producer_byte_rate: 10MiB   # agreed",
            (
                "    - match: {user: alice}   # the batch\n      overrides: [NEW]\n      quotas:\n"
                "        producer_byte_rate: 10MiB   # agreed"
            ),
        ),
        (
            (
                "    - match: {user: alice}\n      quotas: {producer_byte_rate: 10MiB}\n      overrides:\n"
                "        - clusters: [staging]\n          quotas: {consumer_byte_rate: 1MiB}"
            ),
            (
                "    - match: {user: alice}\n      quotas: {producer_byte_rate: 10MiB}\n      overrides:\n"
                "        - NEW\n        - clusters: [staging]\n          quotas: {consumer_byte_rate: 1MiB}"
            ),
        ),
    ],
)
def test_a_value_that_several_clusters_share_gets_an_override_for_this_one(team: Team, entry: str, expected: str) -> None:
    (team.file.parent / "staging.yaml").write_text(cluster("staging", prune="never"))
    (team.file.parent / "test.yaml").write_text(cluster("test", prune="never"))
    team.file.write_text(SHARED.replace("ALICE", entry))

    done = team.alter("--cluster", "prod", "--add", "producer_byte_rate=40MiB")

    assert (done.code, team.live()) == (0, 40 * MIB), done
    written = team.file.read_text()
    (until,) = re.findall(r"until: ([^}]+)\}", written)
    assert written == SHARED.replace("ALICE", expected.replace("NEW", OVERRIDE.replace("UNTIL", until)))
    assert f"declares producer_byte_rate as 40MiB until {until[:10]}" in done.err
    assert "then 10MiB for cluster prod alone" in done.err
    assert invoke("validate", "quotas", cwd=team.folder).code == 0
    for name, rate in (("prod", 40 * MIB), ("test", 10 * MIB)):
        plan = ("plan", "quotas", "--cluster", name, "--bootstrap-server", team.server, "--format", "json")
        changed = {row["entity"].get("user"): row for row in invoke(*plan, cwd=team.folder).json()["changes"]}
        assert ("alice" in changed) is (rate != 40 * MIB)
    team.file.write_text(written.replace(until, "2020-12-01"))
    applied = ("apply", "quotas", "--cluster", "prod", "--bootstrap-server", team.server, "--auto-approve")
    assert invoke(*applied, cwd=team.folder).code == 0
    assert team.live() == 10 * MIB
