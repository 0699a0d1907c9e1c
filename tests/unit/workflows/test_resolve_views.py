"""What is said about a state before anything is asked of it, and what a plan makes of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import AuthorizationError
from reconciler.model.cluster import CallbackClass, Prune, Scope
from reconciler.model.entity import DEFAULT, MatchKind, Selector, TypeMatch
from reconciler.model.state import ClusterIdentity, CurrentState, ObservedFrom
from reconciler.resolution.effective_quotas import KEYS
from reconciler.resolution.resolver import ADDRESS_KEY
from reconciler.resolution.views import ViewKind
from reconciler.workflows.intent import Intent
from reconciler.workflows.resolve import current_view, is_unknown, manifests_view, notes_about, planned_view
from tests.builders import cluster_spec, current, declared, desired, ip, pair, user
from tests.fakes import FakeCluster, WithCallback

PRODUCE = "producer_byte_rate"


def of_version(version: str | None, **entities: float) -> CurrentState:
    state = current({user(name): {PRODUCE: value} for name, value in entities.items()})
    return replace(state, cluster=ClusterIdentity(name=state.cluster.name, id=state.cluster.id, kafka_version=version))


def test_a_callback_is_named_escaped_and_makes_every_answer_about_clients_unknown() -> None:
    view = current_view(of_version("4.3", a=1.0), source=WithCallback("io.example.Own\x1b"))
    answer, address = (view.answers().answer(asked) for asked in (user("a"), ip("10.0.0.7")))
    assert answer.quotas == {}
    assert set(answer.unknown) == set(KEYS)
    assert all('"io.example.Own\\u001b"' in reason for reason in answer.unknown.values())
    assert is_unknown(answer)
    assert not is_unknown(address)
    assert [note for note in view.notes if "client.quota.callback.class" in note]


def test_without_the_right_to_ask_it_is_said_that_nobody_could_check() -> None:
    view = current_view(of_version("4.3", a=1.0), source=WithCallback(AuthorizationError("no DescribeConfigs")))
    assert view.caveats.callback is None
    assert [note for note in view.notes if "No broker answered whether" in note and "no DescribeConfigs" in note]


@pytest.mark.parametrize(
    ("origin", "who"), [(ObservedFrom.SNAPSHOT, "a snapshot does not show"), (ObservedFrom.ZOOKEEPER, "ZooKeeper does not show")]
)
def test_who_cannot_tell_is_named(origin: ObservedFrom, who: str) -> None:
    state = of_version("3.9")
    view = current_view(replace(state, observed=replace(state.observed, origin=origin)), source=FakeCluster())
    assert [note for note in view.notes if who in note]


@pytest.mark.parametrize(
    ("version", "static", "words"),
    [
        ("2.6", True, "quota.producer.default"),
        ("2.8", True, "quota.producer.default"),
        (None, False, "version of the brokers is not known"),
        ("odd", False, "version of the brokers is not known"),
        ("3.0", False, "does not enforce"),
        ("3.4", False, "does not enforce"),
        ("3.5", False, None),
        ("4.3", False, None),
    ],
)
def test_what_a_version_does_otherwise_is_said(version: str | None, static: bool, words: str | None) -> None:
    view = current_view(of_version(version, a=1.0), source=WithCallback())
    assert bool(view.caveats.static_defaults) is static
    assert len(view.notes) == (words is not None)
    assert words is None or words in view.notes[0]
    unlimited = view.answers().answer(pair("b", "c"))
    assert bool(unlimited.unknown) is static


def intent_of(*entities: object, **spec: object) -> Intent:
    return Intent(spec=cluster_spec(**spec), desired=desired(*entities), findings=(), paths=())  # type: ignore[arg-type]  # a test's


def test_where_nobody_else_tells_the_cluster_document_does() -> None:
    spec = cluster_spec(callback=CallbackClass(name="quota_groups:Groups"))
    state = of_version("4.3", a=1.0)
    for view in (
        current_view(state, source=object(), spec=spec),
        current_view(state, source=WithCallback(AuthorizationError("no")), spec=spec),
        manifests_view(intent_of(declared(user("a"), producer_byte_rate=5.0), callback=spec.brokers.callback)),
    ):
        answer = view.answers().answer(user("a"))
        assert (answer.quotas, set(answer.unknown)) == ({}, set(KEYS))
        assert all("quota_groups:Groups" in reason for reason in answer.unknown.values())
        assert not any("resolve quotas as Kafka does" in note for note in view.notes)
    # Brokers that tell know better.
    assert current_view(state, source=WithCallback(), spec=spec).answers().answer(user("a")).quotas[PRODUCE].value == 1.0
    assert "io.example.Own" in (current_view(state, source=WithCallback("io.example.Own"), spec=spec).caveats.callback or "")


def test_after_the_plan_unmanaged_entities_and_those_outside_the_scope_still_hold() -> None:
    live = {user("a"): {PRODUCE: 1.0, "odd_key": 1.0}, user("gone"): {PRODUCE: 2.0}, user("other"): {PRODUCE: 3.0}}
    scope = Scope(exclude=(Selector(types=(("user", TypeMatch(kind=MatchKind.NAME, text="other")),)),))
    before = current_view(current(live), source=WithCallback())
    wanted = declared(user("a"), consumer_byte_rate=5.0)
    kept = planned_view(intent_of(wanted, prune=Prune.NEVER, scope=scope), before)
    assert kept.kind is ViewKind.PLANNED
    assert kept.entities == {**live, user("a"): {"consumer_byte_rate": 5.0, "odd_key": 1.0}}
    pruned = planned_view(intent_of(wanted, prune=Prune.CONFIRM, scope=scope), before)
    assert set(pruned.entities) == {user("a"), user("other")}
    assert [note for note in pruned.notes if "guard 'prune'" in note and note.startswith("1 entities")]
    assert not any("guard" in note for note in planned_view(intent_of(wanted, prune=Prune.ALWAYS), before).notes)


def test_notes_about_an_answer_name_what_stands_beside_it() -> None:
    view = current_view(
        current({pair(DEFAULT, DEFAULT): {PRODUCE: 1.0}, ip("db.internal"): {ADDRESS_KEY: 2.0}}), source=WithCallback()
    )
    answers = view.answers()
    for asked, words in [
        (user("a"), f"another {PRODUCE}"),
        (ip("10.0.0.7"), "ip=db.internal"),
        (ip("db.internal"), "this is a host name"),
    ]:
        assert [note for note in notes_about(answers.answer(asked), answers) if words in note]
    assert notes_about(answers.answer(pair("a", "c")), answers) == ()
