"""Entities that no manifest declares, on a real broker: what drift, plan, apply and the service report, and what removes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

RATE = "producer_byte_rate"
ALICE = ({"user": "alice"}, {RATE: "1MiB"})
BOB = ({"user": "bob"}, {RATE: "2MiB"})
OF_BOB = frozenset({("user", "bob")})
OF_ALICE = frozenset({("user", "alice")})
PAIR = frozenset({("user", "alice"), ("client-id", "loader")})
STRANGER = frozenset({("client-id", "stranger")})


class Checkout:
    """A repository whose first commit is applied to the broker and tagged ``applied``."""

    def __init__(self, folder: Path, server: str) -> None:
        self.git = GitRepository(folder)
        self.server = server
        self.cluster("never")
        self.declare(ALICE, BOB)
        self.git.commit()
        self.git.git("tag", "applied")
        assert self.run("apply", "--auto-approve").code == 0

    def cluster(self, prune: str, **spec: object) -> None:
        connection = {"bootstrapServers": [self.server]}
        self.git.write("cluster.yaml", cluster("prod", prune=prune, connection=connection, **spec))

    def declare(self, *entries: tuple[Mapping[str, object], Mapping[str, object]]) -> None:
        self.git.write("quotas.yaml", quotas(*entries))

    def run(self, command: str, *arguments: str) -> Done:
        return invoke(command, *arguments, cwd=self.git.folder)

    def classes(self, *arguments: str) -> dict[str, str]:
        done = self.run("drift", *arguments, "--format", "json")
        valid(done.json(), "drift")
        return {"/".join(one["entity"].values()): one["class"] for one in done.json()["entities"]}

    def live(self) -> dict[raw_quotas.RawEntity, dict[str, float]]:
        return raw_quotas.settled(self.server)


@pytest.fixture
def checkout(tmp_path: Path, clean_kafka: Sandbox) -> Checkout:
    return Checkout(tmp_path / "repository", clean_kafka.bootstrap_servers)


def warnings(done: Done) -> list[tuple[str, dict[str, str]]]:
    document = done.json()
    valid(document, "plan" if "guards" in document else "apply-report")
    return [(one["id"], one["entity"]) for one in document["findings"]]


def test_a_deleted_entry_under_prune_never_is_a_warning_until_empty_quotas_remove_it(checkout: Checkout) -> None:
    checkout.declare(ALICE)
    assert checkout.classes("--baseline", "applied") == {"bob": "unapplied"}
    for since in (("--base", "applied"), ("--baseline", "applied"), ("--trusted-ref", "applied")):
        planned = checkout.run("plan", *since, "--format", "json", "--detailed-exitcode")
        assert planned.code == 0
        assert warnings(planned) == [("no-longer-declared", {"user": "bob"})]
    text = checkout.run("plan", "--base", "applied")
    assert "user=bob is no longer declared (declared at applied:quotas.yaml:" in text.err
    assert "quotas: {}" in text.err
    assert "Not removed, although no manifest declares these any more:" in text.out
    assert f"  = user=bob\n      {RATE}  2 MiB/s: stays (prune: never)  declared at applied:quotas.yaml:" in text.out
    left = "1 entity that left the manifests is not removed (prune: never)"
    assert f"Nothing to write, but {left} (1 unchanged, 1 unmanaged)." in text.out
    (kept,) = checkout.run("plan", "--base", "applied", "--format", "json").json()["kept"]
    assert (kept["entity"], kept["quotas"]) == ({"user": "bob"}, {RATE: 2097152})
    assert kept["declared_at"].startswith("applied:quotas.yaml:")
    assert "kept because of prune: never" in checkout.run("drift", "--baseline", "applied").out
    comment = checkout.run("plan", "--base", "applied", "--format", "markdown").out
    assert ("no-longer-declared" in comment, "`quotas: {}`" in comment or "quotas: {}" in comment) == (True, True)
    assert "nothing to do" not in comment
    applied = checkout.run("apply", "--auto-approve", "--base", "applied", "--format", "json")
    assert (applied.code, applied.json()["result"]) == (0, "nothing_to_do")
    assert warnings(applied) == [("no-longer-declared", {"user": "bob"})]
    assert "is no longer declared" in checkout.run("apply", "--auto-approve", "--base", "applied").err
    assert OF_BOB in checkout.live()

    checkout.declare(ALICE, ({"user": "bob"}, {}))
    assert checkout.run("validate", "--fail-on", "warning").code == 0
    assert checkout.classes("--baseline", "applied") == {"bob": "unapplied"}
    planned = checkout.run("plan", "--base", "applied", "--format", "json").json()
    assert [(one["entity"], one["action"]) for one in planned["changes"]] == [({"user": "bob"}, "delete")]
    assert planned["findings"] == []
    removed = checkout.run("apply", "--auto-approve", "--accept", "too-many-removals")
    assert removed.code == 0, removed.err
    assert checkout.live() == {OF_ALICE: {RATE: 1048576.0}}

    checkout.declare(ALICE)
    assert checkout.classes("--baseline", "applied") == {}
    assert warnings(checkout.run("plan", "--base", "applied", "--format", "json")) == []


def test_an_addition_that_overrides_a_declared_limit_is_drift_in_every_form(checkout: Checkout) -> None:
    raw_quotas.alter(checkout.server, {PAIR: {RATE: 999292928.0}, STRANGER: {RATE: 5.0}})
    raw_quotas.settled(checkout.server)
    out = {name: f"out-{name}" for name in ("json", "github", "markdown", "sarif", "outputs")}
    arguments = [word for name, file in out.items() for word in ("--out", f"{name}={file}")]
    done = checkout.run("drift", "--detailed-exitcode", "--baseline", "applied", *arguments)
    assert done.code == 2
    assert "+ user=alice client-id=loader  (added: no manifest declares it, and it overrides a declared limit)" in done.out
    assert "953 MiB/s  overrides user=alice (1 MiB/s)" in done.out
    assert "0 unapplied, 0 changed, 0 missing, 1 added. 2 in sync, 1 unmanaged." in done.out
    files = {name: (checkout.git.folder / file).read_text() for name, file in out.items()}
    document = json.loads(files["json"])
    valid(document, "drift")
    assert (document["differs"], document["summary"]["added"], document["prune"]) == (True, 1, "never")
    added, unmanaged = sorted(document["entities"], key=lambda one: str(one["class"]))
    assert added["keys"][RATE]["overrides"] == {"entity": {"user": "alice"}, "value": 1048576, "level": 3}
    assert (unmanaged["class"], unmanaged["in_scope"]) == ("unmanaged", True)
    assert "::warning title=drift/added::user=alice client-id=loader" in files["github"]
    assert "overrides `user=alice` (1 MiB/s)" in files["markdown"]
    assert [one["ruleId"] for one in json.loads(files["sarif"])["runs"][0]["results"]] == ["drift/added"]
    assert {"drifted=true", "added=1", "unmanaged=1", "unmanaged_in_scope=1"} <= set(files["outputs"].splitlines())
    planned = checkout.run("plan", "--format", "json")
    assert ("overrides-declared", {"client-id": "loader", "user": "alice"}) in warnings(planned)

    checkout.declare(ALICE, BOB, ({"user": "alice", "client-id": "loader"}, {}))
    assert checkout.run("apply", "--auto-approve", "--accept", "too-many-removals").code == 0
    assert PAIR not in checkout.live()
    quiet = checkout.run("drift", "--detailed-exitcode")
    assert (quiet.code, "No drift" in quiet.out) == (0, True)


@pytest.mark.parametrize("prune", ["confirm", "always"])
def test_what_the_next_apply_prunes_is_drift_before_it(checkout: Checkout, prune: str) -> None:
    raw_quotas.alter(checkout.server, {STRANGER: {RATE: 5.0}})
    raw_quotas.settled(checkout.server)
    checkout.cluster(prune)
    assert checkout.classes("--baseline", "applied") == checkout.classes() == {"stranger": "added"}
    assert checkout.run("drift", "--detailed-exitcode").code == 2
    removed = checkout.run("apply", "--auto-approve", "--accept", "prune", "--accept", "too-many-removals")
    assert removed.code == 0, removed.err
    assert STRANGER not in checkout.live()
    assert checkout.run("drift", "--detailed-exitcode").code == 0
