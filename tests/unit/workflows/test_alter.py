"""One entity by hand: what may be asked for, what is planned of it, and what stands in the way."""

from __future__ import annotations

import math

import pytest

from reconciler.apply.executor import ApplySettings
from reconciler.errors import UsageError
from reconciler.model.cluster import GuardLimits, Scope, VolumeLimit
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from reconciler.model.plan import ApplyReport, ApplyResult, Plan, Reason
from reconciler.model.state import DesiredEntity, DesiredState
from reconciler.ports import NO_PROGRESS
from reconciler.workflows.alter import AlterRequest, alter_entities, make_alter_request
from reconciler.workflows.apply import Approval, Dialogue
from reconciler.workflows.connect import ClusterTarget
from tests.builders import cluster_spec, ip, pair, span, user
from tests.fakes import FakeClock, FakeCluster

NOTHING_KNOWN = ClusterTarget()


class Run:
    """One ``alter`` and what was shown and asked on the way."""

    def __init__(self, cluster: FakeCluster, *, target: ClusterTarget = NOTHING_KNOWN, answer: bool = True) -> None:
        self.cluster = cluster
        self.target = target
        self.answer = answer
        self.seen: list[Plan] = []
        self.asked: list[Plan] = []

    def _confirm(self, plan: Plan) -> bool:
        self.asked.append(plan)
        return self.answer

    def alter(self, request: AlterRequest, *accepted: str, validate_only: bool = False) -> ApplyReport:
        return alter_entities(
            self.cluster,
            (request,),
            Approval(accepted=accepted, settings=ApplySettings(validate_only=validate_only)),
            target=self.target,
            dialogue=Dialogue(confirm=self._confirm, show=self.seen.append),
            clock=FakeClock(),
            progress=NO_PROGRESS,
        )


@pytest.mark.parametrize(
    ("entity", "add", "delete", "words"),
    [
        (user("a"), {}, (), ["--add KEY=VALUE", "--delete KEY"]),
        (
            user("a"),
            {"producer_byterate": "1"},
            (),
            ["'producer_byterate'", "consumer_byte_rate", "Did you mean 'producer_byte_rate'"],
        ),
        (user("a"), {}, ("rate",), ["'rate'", "producer_byte_rate, consumer_byte_rate"]),
        (user("a"), {"connection_creation_rate": "5"}, (), ["cannot be set for user=a"]),
        (ip("10.0.0.7"), {"producer_byte_rate": "5"}, (), ["It takes connection_creation_rate"]),
        (user("a"), {"producer_byte_rate": "5"}, ("producer_byte_rate",), ["both added and deleted"]),
        (user("a"), {"producer_byte_rate": "0"}, (), ["[value-not-positive]"]),
        (user("a"), {"producer_byte_rate": "1.5"}, (), ["The nearest is 2"]),
        (user("a"), {"producer_byte_rate": "1e30"}, (), ["[value-too-large]"]),
        (user("a"), {"producer_byte_rate": "10mb"}, (), ["Did you mean 10MB"]),
        (user("a"), {"request_percentage": math.nan}, (), ["cannot keep this limit"]),
        (user(""), {"producer_byte_rate": "5"}, (), ["Empty user not supported"]),
        (Entity.of({"ip": "::1", "user": "a"}), {"producer_byte_rate": "5"}, (), ["Invalid quota entity combination"]),
        (user("x" * 40_000), {"producer_byte_rate": "5"}, (), ["32767 bytes"]),
        (user("\ud800"), {"producer_byte_rate": "5"}, (), ["surrogate"]),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error(
    entity: Entity, add: dict[str, str | float], delete: tuple[str, ...], words: list[str]
) -> None:
    with pytest.raises(UsageError) as raised:
        make_alter_request(entity, add=add, delete=delete)
    assert [word for word in words if word not in str(raised.value)] == []
    assert str(raised.value).isprintable()


def test_only_what_differs_is_written_and_keys_that_nobody_named_stay() -> None:
    cluster = FakeCluster({user("a"): {"producer_byte_rate": 5.0, "consumer_byte_rate": 6.0, "future_key": 7.0}})
    request = make_alter_request(
        user("a"), add={"producer_byte_rate": 5.0, "request_percentage": 9.0}, delete=["consumer_byte_rate"]
    )
    run = Run(cluster)

    report = run.alter(request)

    assert (report.result, report.verified) == (ApplyResult.DONE, True)
    assert cluster.entities == {user("a"): {"producer_byte_rate": 5.0, "request_percentage": 9.0, "future_key": 7.0}}
    (change,) = run.asked[0].changes
    assert [(k.key, k.before, k.after, k.reason) for k in change.keys] == [
        ("consumer_byte_rate", 6.0, None, Reason.ON_REQUEST),
        ("request_percentage", None, 9.0, Reason.NOT_IN_CURRENT),
    ]
    assert any("producer_byte_rate for user=a is 5 B/s already" in note for note in run.asked[0].notes)


def test_nothing_to_do_asks_nobody_and_says_why() -> None:
    cluster = FakeCluster({user("a"): {"producer_byte_rate": 5.0}})
    run = Run(cluster)

    report = run.alter(make_alter_request(user("b"), delete=["producer_byte_rate"]))

    assert (report.result, cluster.writes, cluster.validations, run.asked) == (ApplyResult.NOTHING_TO_DO, 0, 0, [])
    assert run.seen[0].notes == ("producer_byte_rate is not set for user=b. Nothing to delete.",)


USERS = Selector(types=(("user", TypeMatch(kind=MatchKind.ANY)),))
MANAGED = ClusterTarget(
    spec=cluster_spec(scope=Scope(include=(USERS,)), places={"scope": span(4, "cluster.yaml")}),
    managed=True,
    desired=DesiredState(entities={user("a"): DesiredEntity(entity=user("a"), quotas={}, source=span(7, "teams/a.yaml"))}),
)


@pytest.mark.parametrize(
    ("entity", "place"),
    [(user("a"), "teams/a.yaml:7:1"), (user("b"), "cluster.yaml:4:1"), (pair("b", DEFAULT), "cluster.yaml:4:1")],
)
def test_what_manifests_manage_is_refused_with_the_place_and_can_be_accepted(entity: Entity, place: str) -> None:
    request = make_alter_request(entity, add={"producer_byte_rate": 5.0})
    run = Run(FakeCluster(), target=MANAGED)

    refused = run.alter(request, "default-entity")
    assert (refused.result, refused.failure_reason, run.cluster.writes) == (ApplyResult.REFUSED, "guard", 0)
    assert str(refused.message).startswith("Guard managed-entity: ")
    assert str(entity) in str(refused.message)
    assert place in str(refused.message)
    assert run.alter(request, "default-entity", "managed-entity").result is ApplyResult.DONE


def test_one_entity_that_was_named_is_never_too_many() -> None:
    nothing = VolumeLimit(percent=0, count=0)
    spec = cluster_spec(guards=GuardLimits(too_many_removals=nothing, too_many_changes=nothing))
    cluster = FakeCluster({user(name): {"producer_byte_rate": 5.0} for name in ("a", "b", "c")})
    run = Run(cluster, target=ClusterTarget(spec=spec, managed=False))

    assert run.alter(make_alter_request(user("a"), delete=["producer_byte_rate"])).result is ApplyResult.DONE
    assert set(cluster.entities) == {user("b"), user("c")}
