"""What the comparison of two states must and must not contain."""

from __future__ import annotations

import pytest

from reconciler.model.cluster import Prune, Scope
from reconciler.model.plan import Action, Reason
from reconciler.model.state import CurrentState, DesiredState
from reconciler.planning.diff import Difference, difference
from tests.builders import current, declared, desired, ip, user


def compare(wanted: DesiredState, live: CurrentState, scope: Scope | None = None, prune: Prune = Prune.ALWAYS) -> Difference:
    return difference(wanted, live, scope=scope or Scope(), prune=prune)


def test_an_entity_that_the_cluster_lacks_is_created_with_its_source() -> None:
    found = compare(desired(declared(user("a"), 7, producer_byte_rate=1024)), current())
    (change,) = found.changes
    assert change.action is Action.CREATE
    (key,) = change.keys
    assert (key.key, key.before, key.after, key.reason) == ("producer_byte_rate", None, 1024, Reason.NOT_IN_CURRENT)
    assert key.source is not None
    assert key.source.line == 7


def test_equal_values_are_unchanged_whether_written_as_integer_or_float() -> None:
    found = compare(desired(declared(user("a"), producer_byte_rate=1024)), current({user("a"): {"producer_byte_rate": 1024.0}}))
    assert found.changes == ()
    assert found.summary.unchanged == 1


def test_a_key_of_a_declared_entity_that_the_manifest_does_not_set_is_removed_even_without_pruning() -> None:
    live = current({user("a"): {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}})
    found = compare(desired(declared(user("a"), producer_byte_rate=1)), live, prune=Prune.NEVER)
    (change,) = found.changes
    assert change.action is Action.UPDATE
    assert [(k.key, k.after, k.reason) for k in change.keys] == [("consumer_byte_rate", None, Reason.KEY_NOT_IN_MANIFEST)]


def test_a_key_that_this_tool_does_not_know_is_left_alone() -> None:
    live = current({user("a"): {"producer_byte_rate": 1.0, "future_rate": 2.0}})
    found = compare(desired(declared(user("a"), producer_byte_rate=3)), live)
    assert [k.key for k in found.changes[0].keys] == ["producer_byte_rate"]
    pruned = compare(desired(declared(user("b"), producer_byte_rate=3)), live)
    assert {c.entity: (c.action, [k.key for k in c.keys]) for c in pruned.changes}[user("a")] == (
        Action.UPDATE,
        ["producer_byte_rate"],
    )


BOTH = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}


@pytest.mark.parametrize(
    ("live", "wanted", "action"),
    [
        ({}, {"producer_byte_rate": 1}, Action.CREATE),
        ({"producer_byte_rate": 1.0}, {"producer_byte_rate": 2}, Action.UPDATE),
        ({"producer_byte_rate": 1.0}, {"consumer_byte_rate": 2}, Action.UPDATE),
        (BOTH, {"producer_byte_rate": 1}, Action.UPDATE),
        (BOTH, {"producer_byte_rate": 5, "consumer_byte_rate": 6}, Action.UPDATE),
        ({"producer_byte_rate": 1.0, "future_rate": 2.0}, {}, Action.UPDATE),
        (BOTH, {}, Action.DELETE),
    ],
)
def test_an_entity_is_deleted_only_when_nothing_of_it_is_left(
    live: dict[str, float], wanted: dict[str, float], action: Action
) -> None:
    found = compare(desired(declared(user("a"), **wanted)), current({user("a"): live} if live else {}))
    assert [change.action for change in found.changes] == [action]
    counts = {"create": 0, "update": 0, "delete": 0, action.value: 1}
    assert {name: getattr(found.summary, name) for name in counts} == counts


def test_a_declared_entity_without_keys_means_absence() -> None:
    found = compare(
        desired(declared(ip("10.0.0.1"))), current({ip("10.0.0.1"): {"connection_creation_rate": 5.0}}), prune=Prune.NEVER
    )
    assert [c.action for c in found.changes] == [Action.DELETE]
    assert compare(desired(declared(ip("10.0.0.1"))), current()).changes == ()


def test_an_undeclarable_live_value_is_replaced() -> None:
    found = compare(
        desired(declared(user("a"), request_percentage=10)), current({user("a"): {"request_percentage": float("nan")}})
    )
    assert len(found.changes) == 1
