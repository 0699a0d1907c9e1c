"""How describe reads: the broker filters what it can, and what it refuses is explained where the filter is why."""

from __future__ import annotations

import pytest

from reconciler.errors import BackendError
from reconciler.model.entity import MatchKind, Selector, TypeMatch
from reconciler.model.state import CurrentState
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
from reconciler.resolution.broker_rules import answer
from reconciler.workflows.describe import describe_cluster
from tests.builders import current, pair, user

LIVE = {entity: {"producer_byte_rate": 5.0} for entity in (user("alice"), user("bob"), user(), pair("alice", "app"))}


class Broker:
    """Filters for itself, or refuses."""

    def __init__(self, refusal: BackendError | None = None) -> None:
        self.refusal = refusal
        self.asked: list[EntityFilter] = []

    def current_state(self) -> CurrentState:
        raise AssertionError("everything was read where the broker can filter")

    def current_matching(self, entity_filter: EntityFilter) -> CurrentState:
        self.asked.append(entity_filter)
        if self.refusal is not None:
            raise self.refusal
        return current(answer(entity_filter, LIVE))


def about(entity_type: str, kind: MatchKind, text: str = "", *, strict: bool = False) -> Selector:
    return Selector(types=((entity_type, TypeMatch(kind=kind, text=text)),), strict=strict)


@pytest.mark.parametrize(
    ("query", "sent", "found"),
    [
        (about("user", MatchKind.NAME, "bob"), (FilterKind.EXACT, "bob"), {user("bob")}),
        (about("user", MatchKind.DEFAULT), (FilterKind.DEFAULT, None), {user()}),
        (about("user", MatchKind.ANY), (FilterKind.SPECIFIED, None), set(LIVE)),
        (about("user", MatchKind.NAMED), (FilterKind.SPECIFIED, None), set(LIVE) - {user()}),
        (about("user", MatchKind.PREFIX, "al", strict=True), (FilterKind.SPECIFIED, None), {user("alice")}),
        (about("user", MatchKind.GLOB, "*b"), (FilterKind.SPECIFIED, None), {user("bob")}),
    ],
)
def test_a_broker_is_asked_for_no_more_than_its_filters_can_say(
    query: Selector, sent: tuple[FilterKind, str | None], found: set[object]
) -> None:
    broker = Broker()

    assert describe_cluster(broker, query).entities.keys() == found
    (asked,) = broker.asked
    assert asked == EntityFilter(
        components=(FilterComponent(entity_type="user", kind=sent[0], name=sent[1]),), strict=query.strict
    )
