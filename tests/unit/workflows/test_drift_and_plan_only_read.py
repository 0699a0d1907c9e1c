"""Drift and plan against a cluster whose every way of writing fails the test, and what drift says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.documents import BASELINE, DRIFT, baseline_of
from reconciler.model.cluster import Prune, Scope
from reconciler.model.drift import DriftClass
from reconciler.model.entity import MatchKind, Selector, TypeMatch
from reconciler.model.plan import ManifestCommit
from reconciler.model.state import ClusterIdentity, CurrentState, DesiredState
from reconciler.ports import QuotaReader, SystemClock
from reconciler.render.drift_text import drift_view
from reconciler.render.terminal import plain
from reconciler.workflows.drift import GivenBaseline, find_drift, given_baseline
from reconciler.workflows.intent import Intent
from reconciler.workflows.plan import make_plan
from tests.builders import client, cluster_spec, current, declared, desired, user
from tests.fakes import FakeCluster, Faults
from tests.support.schemas import valid

DESIRED = desired(
    declared(user("alice"), 3, producer_byte_rate=2.0),
    declared(user("bob"), 5, producer_byte_rate=4.0),
    declared(user("carol"), 7, producer_byte_rate=8.0),
    declared(user("dave"), 9, producer_byte_rate=9.0),
)
LIVE = {
    user("alice"): {"producer_byte_rate": 1.0},
    user("bob"): {"producer_byte_rate": 5.0},
    user("dave"): {"producer_byte_rate": 9.0},
    user("erin"): {"producer_byte_rate": 6.0},
}
BEFORE = desired(
    declared(user("alice"), producer_byte_rate=1.0),
    declared(user("bob"), producer_byte_rate=4.0),
    declared(user("carol"), producer_byte_rate=8.0),
)


class OnlyReads:
    """A ``QuotaReader`` and nothing more: no attribute that could write."""

    def current_state(self) -> CurrentState:
        return current(LIVE)


def intent(state: DesiredState = DESIRED, *, prune: Prune = Prune.ALWAYS, **spec: object) -> Intent:
    return Intent(spec=cluster_spec(prune=prune, **spec), desired=state, findings=(), paths=(".",))


def recorded(folder: Path, state: DesiredState = BEFORE, cluster_id: str | None = "c1") -> GivenBaseline:
    cluster = ClusterIdentity(name="prod", id=cluster_id, kafka_version=None)
    file = folder / "baseline.json"
    file.write_text(BASELINE.text(baseline_of(state, cluster, ManifestCommit(commit="abc", dirty=False))))
    return given_baseline(str(file), ["."])


@pytest.mark.parametrize("reader", [OnlyReads(), FakeCluster(LIVE, faults=Faults(read_only=True))], ids=["reader", "cluster"])
def test_neither_needs_more_than_a_reader(reader: QuotaReader, tmp_path: Path) -> None:
    assert find_drift(intent(), reader, recorded(tmp_path)).differs
    assert make_plan(intent(), reader, accepted=(), clock=SystemClock()).changes
    if isinstance(reader, FakeCluster):
        assert (reader.writes, reader.validations) == (0, 0)


def test_each_entity_is_told_with_its_class_in_json_and_in_text(tmp_path: Path) -> None:
    drift = find_drift(intent(), OnlyReads(), recorded(tmp_path))
    document = DRIFT.write(drift)
    valid(document, "drift")
    assert [(one.entity, one.drift.value) for one in drift.entities] == [
        (user("alice"), "unapplied"),
        (user("bob"), "changed"),
        (user("carol"), "missing"),
        (user("erin"), "added"),
    ]
    text = plain(drift_view(drift).lines)
    assert "~ user=bob  (changed: changed outside the manifests)" in text
    rows = [row.split() for row in text.splitlines()]
    assert ["key", "live", "last", "applied", "declared", "remark"] in rows
    assert ["producer_byte_rate", *["5", "B/s", "4", "B/s", "4", "B/s", "quotas.yaml:5:1"]] in rows
    assert "+ user=erin  (added: no manifest declares it, and the next apply removes it)" in text
    assert "1 unapplied, 1 changed, 1 missing, 1 added. 1 in sync, 0 unmanaged." in text


def test_unmanaged_entities_are_counted_and_not_listed(tmp_path: Path) -> None:
    live = {user(f"u{number:02}"): {"producer_byte_rate": 1.0} for number in range(12)}
    only_users = Scope(include=(Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),)),))
    nothing_declared = intent(desired(), prune=Prune.NEVER, scope=only_users)
    drift = find_drift(nothing_declared, FakeCluster({**live, client("other"): {"producer_byte_rate": 1.0}}))
    text = plain(drift_view(drift).lines)
    assert "u09" not in text
    assert "other" not in text
    assert (len(drift.unmanaged_in_scope), drift.counts[DriftClass.UNMANAGED]) == (12, 13)
