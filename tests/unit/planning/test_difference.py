"""What the comparison of two states must and must not contain."""

from __future__ import annotations

import pytest

from reconciler.model.cluster import Prune, Scope
from reconciler.model.plan import Action, Reason
from reconciler.model.state import CurrentState, DesiredState
from reconciler.planning.diff import Difference, difference
from tests.builders import current, declared, desired, user


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


def test_an_undeclarable_live_value_is_replaced() -> None:
    found = compare(
        desired(declared(user("a"), request_percentage=10)), current({user("a"): {"request_percentage": float("nan")}})
    )
    assert len(found.changes) == 1
