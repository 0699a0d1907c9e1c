"""``apply --record-baseline`` on a real broker, what ``drift --baseline FILE`` tells then, and plans that do not match."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.broker_folder import BrokerFolder
from tests.support.command import Done
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

ALICE = frozenset({("user", "alice")})
RATE = "producer_byte_rate"


class Folder(BrokerFolder):
    """Manifests for one user, alice."""

    def apply(self, *arguments: str) -> Done:
        return self.run("apply", "--auto-approve", *arguments)

    def drift(self, *arguments: str) -> Done:
        return self.run("drift", "--baseline", "baseline.json", "--detailed-exitcode", "--format", "json", *arguments)

    def baseline(self) -> Any:
        return json.loads((self.folder / "baseline.json").read_text())


@pytest.fixture
def folder(tmp_path: Path, clean_kafka: Sandbox) -> Folder:
    made = Folder(tmp_path, clean_kafka)
    made.declare(alice=1000)
    return made


def test_from_a_clean_apply_to_drift_of_each_class(folder: Folder) -> None:
    applied = folder.apply("--record-baseline", "baseline.json")
    assert applied.code == 0, applied.err
    valid(folder.baseline(), "baseline")
    assert folder.baseline()["entities"] == [{"entity": {"user": "alice"}, "quotas": {RATE: 1000}}]
    in_sync = folder.drift()
    assert (in_sync.code, in_sync.json()["entities"]) == (0, []), in_sync.err
    folder.declare(alice=2000)
    assert folder.drift().json()["entities"][0]["class"] == "unapplied"
    raw_quotas.alter(folder.server, {ALICE: {RATE: 7.0}})
    changed = folder.drift()
    assert changed.code == 2
    (one,) = changed.json()["entities"]
    assert one["class"] == "changed"
    assert {side: one["keys"][RATE][side] for side in ("desired", "baseline", "live")} == {
        "desired": 2000,
        "baseline": 1000,
        "live": 7,
    }
    raw_quotas.remove_all(folder.server)
    assert folder.drift().json()["entities"][0]["class"] == "missing"
    assert folder.live() == {}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--record-baseline", "no/such/folder.json"), 1, "the folder does not exist"),
        (("--record-baseline", "."), 1, "the path is a folder"),
        (("--record-baseline", "b.json", "--validate-only"), 64, "exclude each other"),
        (("--record-baseline", "b.json", "quotas.yaml", "cluster.yaml"), 64, "needs all manifests"),
    ],
)
def test_what_could_not_be_recorded_is_found_out_before_anything_is_written(
    folder: Folder, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = folder.apply(*arguments)
    assert (done.code, words in done.err) == (code, True), done.err
    assert folder.live() == {}


def test_guards_and_changes_of_a_saved_plan_are_not_believed(folder: Folder) -> None:
    folder.quotas(({"user": {"default": True}}, {RATE: 5}))
    plan = folder.run("plan", "--format", "json").json()
    assert plan["applyable"] is False
    plan |= {"applyable": True, "guards": [{**guard, "status": "accepted"} for guard in plan["guards"]]}
    (folder.folder / "plan.json").write_text(json.dumps(plan))
    assert folder.apply("--plan", "plan.json").code == 3
    assert folder.live() == {}
