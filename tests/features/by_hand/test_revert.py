"""The way back: what a run wrote goes to what was there before, and nobody else's work is touched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.executor import ApplySettings, Executor
from reconciler.apply.stepping import SteppedExecutor
from reconciler.apply.steps import StepDown
from reconciler.documents import APPLY_REPORT, read_apply_report
from reconciler.errors import FileAccessError, UsageError, WrongClusterError
from reconciler.features.by_hand.revert import Undoing, load_undoing, revert_report
from reconciler.formats import plan_digest
from reconciler.formats.canonical import document_text
from reconciler.model.cluster import ClusterSpec, Scope
from reconciler.model.entity import Entity, MatchKind, Selector, TypeMatch
from reconciler.model.plan import Action, ApplyReport, ApplyResult, Change, ChangeStatus, KeyChange, Plan, Reason
from reconciler.model.state import ClusterIdentity
from reconciler.ports import NO_PROGRESS
from reconciler.workflows.apply import UNASKED, Approval, Dialogue
from reconciler.workflows.connect import ClusterTarget
from tests.builders import cluster_spec, plan, user
from tests.fakes import FakeClock, FakeCluster, Fault, Faults
from tests.support.git_repository import GitRepository
from tests.support.schemas import valid

RATE, OTHER = "producer_byte_rate", "consumer_byte_rate"
EVERYTHING = ("too-many-removals", "too-many-changes", "large-reduction", "default-entity")


class Still(FakeClock):
    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._then = then

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if seconds == 11.0:
            self._then()


def change(entity: Entity, **keys: tuple[float | None, float | None]) -> Change:
    changed = tuple(KeyChange(key=k, before=b, after=a, reason=Reason.VALUE_DIFFERS) for k, (b, a) in sorted(keys.items()))
    return Change(entity=entity, action=Action.UPDATE, keys=changed)


def the_plan(*changes: Change) -> Plan:
    return plan(*changes, digest=plan_digest("c1", changes))


def applied(cluster: FakeCluster, *changes: Change) -> ApplyReport:
    return Executor(cluster, clock=Still(), progress=NO_PROGRESS, settings=ApplySettings()).run(the_plan(*changes))


def text_of(report: ApplyReport) -> str:
    document = APPLY_REPORT.write(report)
    valid(document, "apply-report")
    return document_text(document)


def undo(
    cluster: FakeCluster,
    report: ApplyReport,
    *,
    accepted: tuple[str, ...] = EVERYTHING,
    spec: ClusterSpec | None = None,
    **approval: Any,
) -> ApplyReport:
    undoing = Undoing(
        report=read_apply_report(text_of(report), name="report.json"),
        file="report.json",
        target=ClusterTarget(spec=spec or ClusterSpec()),
    )
    shown: list[Plan] = []
    return revert_report(
        undoing,
        cluster,
        Approval(accepted=accepted, **approval),
        dialogue=Dialogue(confirm=lambda _: True, show=shown.append),
        clock=Still(),
        progress=NO_PROGRESS,
    )


BEFORE: Mapping[Entity, Mapping[str, float]] = {
    user("kept"): {RATE: 1.0},
    user("gone"): {RATE: 2.0, OTHER: 3.0},
    user("moved"): {RATE: 1000.0, OTHER: 3.0},
}
CHANGES = (
    change(user("moved"), **{RATE: (1000.0, 2000.0)}),
    change(user("new"), **{RATE: (None, 9.0)}),
    change(user("gone"), **{RATE: (2.0, None), OTHER: (3.0, None)}),
)


def test_the_cluster_has_again_what_it_had() -> None:
    cluster = FakeCluster(BEFORE)
    report = applied(cluster, *CHANGES)
    assert cluster.entities != BEFORE
    back = undo(cluster, report)
    assert (back.result, back.verified) == (ApplyResult.DONE, True)
    assert cluster.entities == BEFORE
    assert {str(o.change.entity): o.change.action for o in back.outcomes} == {
        "user=moved": Action.UPDATE,
        "user=new": Action.DELETE,
        "user=gone": Action.CREATE,
    }


def test_what_somebody_changed_since_refuses_the_whole_way_back_by_name_and_values() -> None:
    cluster = FakeCluster(BEFORE)
    report = applied(cluster, *CHANGES)
    cluster.write_from_outside(user("moved"), {RATE: 77.0, OTHER: 3.0})
    writes = cluster.writes
    refused = undo(cluster, report)
    assert (refused.result, refused.failure_reason, cluster.writes) == (ApplyResult.REFUSED, "changed-since", writes)
    for part in ("user=moved producer_byte_rate", "is 77", "left it at 2000", "before it: 1000"):
        assert part in (refused.message or "")


@pytest.mark.parametrize("fault", list(Fault))
def test_an_unknown_outcome_is_decided_by_what_is_live(fault: Fault) -> None:
    class Blind(FakeCluster):
        """Nobody can look what became of a write."""

        blind = False

        def alter(self, alterations: Any, *, validate_only: bool) -> Any:
            self.blind = self.blind or not validate_only
            return super().alter(alterations, validate_only=validate_only)

        def current_state(self) -> Any:
            from reconciler.errors import UnreachableError

            if self.blind:
                raise UnreachableError("nobody answers")
            return super().current_state()

    cluster = Blind(BEFORE, faults=Faults(writes=dict.fromkeys(range(1, 100), fault)))
    report = applied(cluster, *CHANGES)
    assert {o.status for o in report.outcomes} == {ChangeStatus.UNKNOWN}
    seen = FakeCluster(cluster.entities)
    back = undo(seen, report)
    assert back.result is (ApplyResult.DONE if fault is Fault.AFTER_APPLYING else ApplyResult.NOTHING_TO_DO)
    assert seen.entities == BEFORE


def test_a_run_that_stopped_on_a_step_is_undone_from_where_it_stopped() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster = FakeCluster(BEFORE)
    run = SteppedExecutor(
        cluster, clock=Still(interrupt), progress=NO_PROGRESS, settings=ApplySettings(), step_down=StepDown(factor=2.0)
    )
    report = run.run(the_plan(change(user("moved"), **{RATE: (1000.0, 10.0), OTHER: (3.0, 8.0)})))
    assert cluster.entities[user("moved")] == {RATE: 500.0, OTHER: 8.0}
    assert undo(cluster, report).result is ApplyResult.DONE
    assert cluster.entities == BEFORE


def test_guards_hold_on_the_way_back() -> None:
    cluster = FakeCluster({user("a"): {RATE: 1.0}})
    report = applied(cluster, change(user("a"), **{RATE: (1.0, 1e9)}))
    refused = undo(cluster, report, accepted=())
    assert (refused.result, refused.failure_reason) == (ApplyResult.REFUSED, "guard")
    assert "--accept large-reduction" in (refused.message or "")
    assert undo(cluster, report, accepted=("large-reduction",)).result is ApplyResult.DONE


def test_protected_entities_and_scope_of_the_cluster_document_hold() -> None:
    cluster = FakeCluster(BEFORE)
    report = applied(cluster, *CHANGES)
    moved = Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text="moved")),))
    protected = undo(cluster, report, spec=cluster_spec(protected=(moved,)))
    assert (protected.failure_reason, "protected-entity" in (protected.message or "")) == ("guard", True)
    outside = undo(cluster, report, spec=ClusterSpec(name="prod", scope=Scope(exclude=(moved,))))
    assert (outside.result, outside.failure_reason) == (ApplyResult.REFUSED, "out-of-scope")
    assert "user=moved" in (outside.message or "")


def test_a_report_of_another_cluster_is_refused() -> None:
    report = applied(FakeCluster(BEFORE), *CHANGES)
    other = FakeCluster(BEFORE, identity=ClusterIdentity(id="c2"), faults=Faults(read_only=True))
    with pytest.raises(WrongClusterError, match="is of cluster c1, and c2 answers"):
        undo(other, report)


def good_document() -> dict[str, Any]:
    return json.loads(text_of(applied(FakeCluster(BEFORE), *CHANGES)))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("format_version",), "2.0", "of format 2.0"),
        (("digest",), "sha256:00", "digest must be a string of the form"),
        (("changes", 0, "status"), "done", "changes[0].status must be one of"),
        (("changes", 1, "entity"), {"user": "moved"}, "an entity twice"),
        (("changes", 0, "keys", RATE, "before"), True, "before must be a number"),
        (("changes", 0, "keys"), {"some_key": {"before": 1, "after": 2}}, "a quota key that this version writes"),
        (("changes", 0, "reached"), {OTHER: [1]}, "keys of the same change"),
        (("summary", "applied"), 2, "summary must be"),
    ],
)
def test_a_report_that_is_none_is_refused_with_the_field(path: tuple[str | int, ...], value: object, said: str) -> None:
    document: Any = good_document()
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=re.escape(said)):
        APPLY_REPORT.build(document)


def test_values_before_that_were_edited_are_noticed() -> None:
    document = good_document()
    document["changes"][0]["keys"][RATE]["before"] = 5
    with pytest.raises(FileAccessError, match="was changed after it was written"):
        read_apply_report(json.dumps(document), name="report.json")


def test_manifests_count_only_where_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(applied(FakeCluster(BEFORE), *CHANGES))
    (tmp_path / "c.yaml").write_text(
        "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec: {prune: never, clusterId: c1}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert load_undoing(text, file="r", paths=[], cluster=None).target.spec == ClusterSpec()
    assert load_undoing(text, file="r", paths=["."], cluster=None).target.spec.name == "prod"
    assert load_undoing(text, file="r", paths=[], cluster="prod").target.spec.cluster_id == "c1"
    with pytest.raises(UsageError, match="no manifest declares cluster"):
        load_undoing(text, file="r", paths=[], cluster="other")


def test_a_scope_that_a_pull_request_widens_counts_only_after_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec: {prune: never%s}\n"
    repository = GitRepository(tmp_path)
    repository.write("c.yaml", spec % ", scope: {exclude: [{user: moved}]}")
    repository.commit()
    repository.branch()
    repository.write("c.yaml", spec % "")
    head = repository.commit()
    monkeypatch.chdir(tmp_path)
    cluster = FakeCluster(BEFORE)
    text = text_of(applied(cluster, *CHANGES))

    def with_reference(ref: str | None) -> ApplyReport:
        undoing = load_undoing(text, file="r", paths=["."], cluster=None, trusted_ref=ref)
        assert undoing.target.source.commit == head
        approval = Approval(accepted=EVERYTHING)
        return revert_report(undoing, cluster, approval, dialogue=UNASKED, clock=Still(), progress=NO_PROGRESS)

    assert with_reference("main").failure_reason == "out-of-scope"
    assert with_reference(None).result is ApplyResult.DONE
