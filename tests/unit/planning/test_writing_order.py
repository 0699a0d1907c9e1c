"""What is written first, and why."""

from __future__ import annotations

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import Change
from reconciler.planning.diff import sort_for_writing
from tests.builders import client, ip, pair, rate_change, user

RATE = "producer_byte_rate"


def order(*changes: Change, live: dict[Entity, dict[str, float]] | None = None) -> list[Entity]:
    return [c.entity for c in sort_for_writing(changes, live or {c.entity: {RATE: 1.0} for c in changes})]


def test_raises_come_before_reductions() -> None:
    assert order(rate_change(user("a"), 2, 1), rate_change(user("b"), 1, 2)) == [user("b"), user("a")]


def test_an_exemption_is_written_before_the_default_that_it_exempts_from() -> None:
    assert order(rate_change(user(), None, 5), rate_change(user("svc"), None, 9), live={}) == [user("svc"), user()]


def test_removals_come_last_the_broad_ones_first() -> None:
    live = {user("a"): {RATE: 1.0}, user(): {RATE: 1.0}, client(): {RATE: 1.0}}
    assert order(rate_change(user("a"), 1, None), rate_change(user(), 1, None), rate_change(user("z"), None, 1), live=live) == [
        user("z"),
        user(),
        user("a"),
    ]


def test_a_removal_that_falls_to_nothing_only_loosens() -> None:
    assert order(
        rate_change(user("a"), 1, None), rate_change(user("b"), 2, 1), live={user("a"): {RATE: 1.0}, user("b"): {RATE: 2.0}}
    ) == [user("a"), user("b")]


@pytest.mark.parametrize(
    ("removed", "other"),
    [
        (user("a"), user()),
        (user("a"), client("app")),
        (user("a"), pair(DEFAULT, "app")),
        (pair("a", "app"), user("a")),
        (pair("a", "app"), pair("a", DEFAULT)),
        (pair("a", "app"), client("app")),
        (pair("a", DEFAULT), client("app")),
        (client("app"), client()),
        (ip("10.0.0.1"), ip()),
    ],
)
def test_a_removal_that_another_entity_catches_waits(removed: Entity, other: Entity) -> None:
    live = {removed: {RATE: 1.0}, other: {RATE: 1.0}, user("raised"): {RATE: 1.0}}
    assert order(rate_change(removed, 1, None), rate_change(user("new"), None, 3), live=live) == [user("new"), removed]


@pytest.mark.parametrize(
    ("removed", "other"),
    [
        (pair("a", "app"), pair("b", "app")),
        (pair("a", "app"), client("other")),
        (client("app"), user("a")),
        (user("a"), pair("a", "app")),
        (ip("10.0.0.1"), client()),
    ],
)
def test_a_removal_that_no_other_entity_catches_does_not_wait(removed: Entity, other: Entity) -> None:
    live = {removed: {RATE: 1.0}, other: {RATE: 1.0}}
    assert order(rate_change(removed, 1, None), rate_change(user("new"), None, 3), live=live) == [removed, user("new")]
