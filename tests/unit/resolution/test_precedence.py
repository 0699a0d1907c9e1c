"""The table of precedence levels, as Kafka's documentation lists it, and everything that only repeats it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.features.insight.report_page import embedded
from reconciler.model.effect import OTHER
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.precedence import (
    CLIENT_LEVELS,
    CLIENT_PRECEDENCE,
    USER_LEVELS,
    GroupedBy,
    level_of,
    named_or_other,
    overlap,
    weaker_levels,
)
from tests.builders import client, ip, pair, user
from tests.support import report_world

IN_KAFKAS_ORDER = (
    pair("u", "c"),
    pair("u", DEFAULT),
    user("u"),
    pair(DEFAULT, "c"),
    pair(DEFAULT, DEFAULT),
    user(),
    client("c"),
    client(),
)


def test_the_levels_stand_in_kafkas_order() -> None:
    assert [level.entity_for("u", "c") for level in CLIENT_PRECEDENCE] == list(IN_KAFKAS_ORDER)
    assert [level.number for level in CLIENT_PRECEDENCE] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [level_of(entity) for entity in IN_KAFKAS_ORDER] == list(CLIENT_PRECEDENCE)


def test_quota_groups_follow_from_the_types_of_a_level() -> None:
    by_both, by_user, by_client = GroupedBy.USER_AND_CLIENT_ID, GroupedBy.USER, GroupedBy.CLIENT_ID
    expected = [by_both, by_both, by_user, by_both, by_both, by_user, by_client, by_client]
    assert [level.grouped_by for level in CLIENT_PRECEDENCE] == expected
    assert (USER_LEVELS, CLIENT_LEVELS) == ((3, 6), (7, 8))


@pytest.mark.parametrize(
    ("entity", "other", "meet"),
    [
        (user("a"), user("a"), True),
        (user("a"), user("b"), False),
        (user("a"), user(), True),
        (user("a"), client("c"), True),
        (user("a"), pair("a", "c"), True),
        (user("b"), pair("a", "c"), False),
        (client("d"), pair("a", "c"), False),
        (pair("a", "c"), pair("a", "d"), False),
        (pair("a", "c"), pair(DEFAULT, "c"), True),
        (pair("a", "c"), pair(DEFAULT, "d"), False),
        (pair("a", DEFAULT), pair("b", DEFAULT), False),
        (ip("10.0.0.1"), ip("10.0.0.2"), False),
        (ip("10.0.0.1"), ip(), True),
        (ip("10.0.0.1"), user("a"), False),
        (ip(), user(), False),
    ],
)
def test_entities_overlap_when_some_client_or_address_meets_both(entity: Entity, other: Entity, meet: bool) -> None:
    assert (overlap(entity, other), overlap(other, entity)) == (meet, meet)


def test_other_entities_have_no_level() -> None:
    others = (ip("10.0.0.1"), ip(), Entity.of({"client-id-prefix": "a"}), Entity.of({"user": "u", "client-id-prefix": "a"}))
    assert {level_of(entity) for entity in others} == {None}
    assert {weaker_levels(entity) for entity in others} == {()}


def test_a_level_that_needs_an_unknown_or_empty_name_has_no_entity() -> None:
    assert [level.number for level in CLIENT_PRECEDENCE if level.entity_for(OTHER, OTHER)] == [5, 6, 8]
    assert [level.number for level in CLIENT_PRECEDENCE if level.entity_for("u", "")] == [2, 3, 5, 6, 8]
    assert [level.number for level in CLIENT_PRECEDENCE if level.entity_for(OTHER, "c")] == [4, 5, 6, 7, 8]
    assert named_or_other(pair("u", DEFAULT)) == ("u", OTHER)


def test_the_report_page_gets_the_table_as_data() -> None:
    data = json.loads(embedded(report_world.company()))
    assert [(level["user"], level["client"]) for level in data["levels"]] == [
        (level.user.value, level.client_id.value) for level in CLIENT_PRECEDENCE
    ]
    assert data["addresses"] == ["name", "default"]


def test_no_other_module_lists_the_levels() -> None:
    root = Path(__file__).parents[3] / "reconciler"
    shapes = re.compile(r"\(DEFAULT, None\)|\(None, DEFAULT\)|\(DEFAULT, DEFAULT\)|\((3, 6|7, 8)\)")
    files = [file for file in sorted(root.rglob("*.py")) if file.name != "precedence.py" or file.parent.name == "lint"]
    assert [str(file) for file in files if shapes.search(file.read_text())] == []
