"""The Python interface over a cluster in memory: what it writes, what it refuses, and what it never shows."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reconciler import errors
from reconciler.client import ANY, DEFAULT, NAMED, ClusterQuotas, Entity, connect, entity, manifests, matching, prefix
from reconciler.errors import GuardRefusedError, NotAppliedError, StalePlanError, UsageError, WrongClusterError
from reconciler.model.cluster import ClusterSpec, FreezeWindow, Once, WindowKind
from reconciler.model.plan import ApplyResult
from reconciler.model.state import ClusterIdentity
from reconciler.workflows.connect import ClusterTarget
from tests.builders import cluster_spec
from tests.fakes import FakeCluster, Faults

ALICE = entity(user="alice")
KEY = "producer_byte_rate"


def opened(cluster: FakeCluster, target: ClusterTarget | None = None) -> ClusterQuotas:
    return ClusterQuotas(cluster, target or ClusterTarget())


def test_a_plan_writes_nothing_and_its_apply_writes_what_it_shows() -> None:
    cluster = FakeCluster({ALICE: {KEY: 1000.0, "consumer_byte_rate": 7.0}})
    change = opened(cluster).plan_alter({ALICE: {KEY: "1MiB", "consumer_byte_rate": None}})
    assert (cluster.writes, cluster.validations) == (0, 0)
    report = change.apply(accept="too-many-removals")
    assert (report.result, report.verified) == (ApplyResult.DONE, True)
    assert cluster.entities == {ALICE: {KEY: 1048576.0}}
    assert [(key.key, key.before, key.after) for key in change.plan.changes[0].keys] == [
        ("consumer_byte_rate", 7.0, None),
        (KEY, 1000.0, 1048576.0),
    ]


def test_many_entities_are_planned_together_and_written_in_one_request() -> None:
    keeps, goes = entity(user="keeps"), entity(user="goes")
    rises = [entity(user=f"batch-{number}", client_id="app") for number in range(1500)]
    cluster = FakeCluster({keeps: {KEY: 7.0}, goes: {KEY: 8.0, "request_percentage": 9.0}, **{one: {KEY: 1.0} for one in rises}})
    rows: dict[Entity, dict[str, str | float | None]] = {one: {KEY: "1MiB", "consumer_byte_rate": 5} for one in rises}
    change = opened(cluster).plan_alter({**rows, keeps: {KEY: 7}, goes: {KEY: None, "request_percentage": None}})
    counts = "0 to create, 1,500 to update, 1 to delete"
    assert repr(change) == f"<PlannedChange of cluster prod: {counts}, guard too-many-changes needs acceptance>"
    assert [str(note) for note in change.plan.notes] == ["producer_byte_rate for user=keeps is 7 B/s already."]
    with pytest.raises(GuardRefusedError, match="too-many-changes"):
        change.apply()
    assert cluster.writes == 0
    assert change.apply(accept=["too-many-changes"]).verified
    assert cluster.writes == 1
    assert cluster.entities == {keeps: {KEY: 7.0}, **{one: {KEY: 1048576.0, "consumer_byte_rate": 5.0} for one in rises}}


def test_validating_lets_the_cluster_check_and_writes_nothing() -> None:
    cluster = FakeCluster()
    report = opened(cluster).plan_alter({entity(user=DEFAULT): {KEY: 5}}).validate()
    assert report.validate_only
    assert (cluster.validations, cluster.writes, cluster.entities) == (1, 0, {})


def test_a_guard_stops_a_change_until_it_is_accepted_by_its_name() -> None:
    cluster = FakeCluster()
    change = opened(cluster).plan_alter({entity(user=DEFAULT): {KEY: 5}})
    with pytest.raises(GuardRefusedError, match="--accept default-entity") as refused:
        change.apply()
    assert refused.value.guard_ids == ("default-entity",)
    with pytest.raises(GuardRefusedError):
        change.apply(accept=["large-reduction"])
    with pytest.raises(UsageError, match="unknown guard 'deflaut-entity'"):
        change.apply(accept=["deflaut-entity"])
    assert cluster.writes == 0
    assert change.apply(accept=["default-entity"]).verified


def test_what_somebody_changed_after_the_plan_is_not_overwritten() -> None:
    cluster = FakeCluster({ALICE: {KEY: 1000.0}})
    change = opened(cluster).plan_alter({ALICE: {KEY: 900}})
    cluster.write_from_outside(ALICE, {KEY: 5.0})
    with pytest.raises(StalePlanError):
        change.apply()
    assert cluster.entities == {ALICE: {KEY: 5.0}}


def test_what_the_cluster_refuses_is_an_error_with_the_report() -> None:
    cluster = FakeCluster(faults=Faults(refuse={ALICE: (42, "no such thing")}))
    with pytest.raises(NotAppliedError) as failed:
        opened(cluster).plan_alter({ALICE: {KEY: 5}}).apply()
    (outcome,) = failed.value.report.outcomes
    assert (failed.value.report.result, outcome.error) == (ApplyResult.FAILED, "no such thing")


def test_another_cluster_than_the_manifests_name_is_refused() -> None:
    named = ClusterTarget(spec=ClusterSpec(name="prod", cluster_id="another"))
    with pytest.raises(WrongClusterError):
        opened(FakeCluster({ALICE: {KEY: 5.0}}), named).plan_alter({ALICE: {KEY: 6}})


@pytest.mark.parametrize("name", [{"default": True}, 7, ["a"], b"a", True])
def test_a_name_that_is_neither_text_nor_the_default_is_a_usage_error(name: Any) -> None:
    for make in (entity, matching):
        with pytest.raises(UsageError, match="must be a string or DEFAULT"):
            make(user=name)
    with pytest.raises(UsageError, match="For the default give DEFAULT"):
        entity(client_id={"default": True})  # type: ignore[arg-type]  # what a YAML habit would give


def test_a_selector_keeps_names_defaults_and_absent_types_apart() -> None:
    literal, default, pair = entity(user="<default>"), entity(user=DEFAULT), entity(user="alice", client_id=DEFAULT)
    live = {one: {KEY: 1.0} for one in (ALICE, literal, default, pair, entity(client_id="alice"), entity(ip="10.0.0.1"))}
    quotas = opened(FakeCluster(live))
    assert set(quotas.describe().entities) == set(live)
    assert set(quotas.describe(matching(user=ANY, strict=True)).entities) == {ALICE, literal, default}
    assert set(quotas.describe(matching(user=NAMED)).entities) == {ALICE, literal, pair}
    assert set(quotas.describe(matching(user=DEFAULT)).entities) == {default}
    assert set(quotas.describe(matching(user="<default>")).entities) == {literal}
    assert set(quotas.describe(matching(user=prefix("al"), client_id=ANY)).entities) == {pair}
    assert set(quotas.describe(matching(strict=True)).entities) == set()


def test_a_state_resolves_a_client() -> None:
    answers = opened(FakeCluster({ALICE: {KEY: 5.0}})).read().answers()
    (limit,) = answers.answer(entity(user="alice", client_id="app")).quotas.values()
    assert (limit.value, limit.source, limit.level, limit.bucket) == (5.0, ALICE, 3, {"user": "alice"})


def test_a_closed_connection_says_so_and_closes_once() -> None:
    cluster = FakeCluster()
    with opened(cluster) as quotas:
        change = quotas.plan_alter({ALICE: {KEY: 5}})
    quotas.close()
    assert cluster.closes == 1
    for use in (quotas.describe, quotas.read, change.apply):
        with pytest.raises(UsageError, match="Connect again"):
            use()


class OneAtATime(FakeCluster):
    """Fails when two threads are in it at once."""

    def __init__(self) -> None:
        super().__init__({ALICE: {KEY: 5.0}})
        self._busy = threading.Lock()

    def describe(self, *args, **kwargs):
        assert self._busy.acquire(blocking=False), "two calls at once"
        try:
            return super().describe(*args, **kwargs)
        finally:
            self._busy.release()


def test_threads_that_share_a_connection_take_turns() -> None:
    quotas = opened(OneAtATime())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: quotas.describe().entities[ALICE][KEY], range(200)))
    assert answers == [5.0] * 200


def test_nothing_shows_a_secret_or_what_a_name_would_do_to_a_terminal() -> None:
    evil = ClusterIdentity(name="\x1b[31mred", id="c1", kafka_version="4.3")
    quotas = opened(FakeCluster(identity=evil))
    assert repr(quotas.plan_alter({entity(user="\x1b"): {KEY: 5}})).isprintable()


def test_arguments_that_cannot_work_are_refused_at_once() -> None:
    for call in (lambda: connect(paths="quotas"), lambda: manifests("quotas")):
        with pytest.raises(UsageError, match="paths is a list"):
            call()
    with pytest.raises(UsageError, match="give one of"):
        connect("b1:9092", zookeeper="zk1:2181")
    with pytest.raises(UsageError, match="give one of"):
        manifests(["quotas"], snapshot="now.json", bootstrap_server="b1:9092")


def test_a_frozen_cluster_is_told_from_other_guards() -> None:
    always = FreezeWindow(kind=WindowKind.DENY, when=Once(), reason="year's end")
    quotas = opened(FakeCluster(), ClusterTarget(spec=cluster_spec(freeze=(always,))))
    with pytest.raises(errors.FrozenError, match="freeze-window"):
        quotas.plan_alter({ALICE: {KEY: 5}}).apply()
    assert quotas.plan_alter({ALICE: {KEY: 5}}).apply(accept=["freeze-window"]).verified


def test_a_name_that_is_most_likely_a_mistake_is_warned_of_and_not_refused() -> None:
    change = opened(FakeCluster()).plan_alter({entity(user="<default>"): {KEY: 5}})
    assert any("<default>" in warning for warning in change.warnings)
    assert change.warnings[0] in repr(change)
    assert change.apply().verified
    assert opened(FakeCluster()).plan_alter({ALICE: {KEY: 5}}).warnings == ()
