"""Notes of ``describe`` on quotas of reserved users, and on the callback class of the brokers."""

from __future__ import annotations

import pytest

from reconciler.errors import AuthorizationError
from reconciler.model.cluster import CallbackClass, ClusterSpec
from reconciler.model.entity import Entity
from reconciler.model.state import DesiredState
from reconciler.resolution.reserved_users import GROUP_CALLBACK, GroupLimit, reserved_entity
from reconciler.workflows.backtest import proposal_of, proposal_of_settings
from reconciler.workflows.connect import with_facts
from reconciler.workflows.describe import stored_rule_notes
from reconciler.workflows.intent import Intent
from tests.builders import cluster_spec, current, user
from tests.fakes import WithCallback

KEY = "producer_byte_rate"
LIMIT = reserved_entity(GroupLimit(group="g"))


def notes(broker: WithCallback, *entities: Entity, spec: ClusterSpec | None = None) -> list[str]:
    state = current({entity: {KEY: 2048.0} for entity in entities})
    return [str(note) for note in stored_rule_notes(state, broker, spec or ClusterSpec())]


def test_a_cluster_without_reserved_users_has_a_note_for_a_class_of_its_own_alone() -> None:
    assert notes(WithCallback(GROUP_CALLBACK), user("alice")) == []
    (note,) = notes(WithCallback("io.example.Own"), user("alice"))
    assert note.startswith("The brokers resolve quotas with their own class io.example.Own")


def test_the_class_is_asked_for_once_for_a_state() -> None:
    broker = WithCallback("io.example.Own")
    state = with_facts(current({user("alice"): {KEY: 2048.0}}), broker)
    assert with_facts(state, broker) == state
    assert [*stored_rule_notes(state, broker, ClusterSpec())] != []
    assert (broker.asked, state.cluster.quota_callback, state.callback_unknown) == (1, "io.example.Own", None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "The brokers do not have the plugin of groups, so quotas of reserved users have no effect."),
        ("io.example.Own", "The brokers resolve quotas with their own class io.example.Own"),
        (AuthorizationError("not allowed"), "Nothing shows whether the brokers have the plugin of groups."),
    ],
)
def test_the_class_of_the_brokers_decides(answer: str | AuthorizationError | None, words: str) -> None:
    assert words in notes(WithCallback(answer), LIMIT)[-1]


def test_a_class_of_the_manifest_is_compared_with_that_of_the_brokers() -> None:
    spec = cluster_spec(callback=CallbackClass(name=GROUP_CALLBACK))
    assert "do not have the plugin" in notes(WithCallback(None), user("alice"), spec=spec)[-1]
    assert notes(WithCallback(GROUP_CALLBACK), user("alice"), spec=spec) == []


def test_a_backtest_names_the_class_of_the_brokers_with_and_without_manifests() -> None:
    state = with_facts(current({user("alice"): {KEY: 2048.0}}), WithCallback("io.example.Own"))
    intent = Intent(spec=ClusterSpec(), desired=DesiredState(), findings=(), paths=())
    for proposal in (proposal_of(intent, state), proposal_of_settings({}, state)):
        assert [note for note in proposal.notes if "io.example.Own" in note]
    assert proposal_of_settings({}, current()).notes == ()
