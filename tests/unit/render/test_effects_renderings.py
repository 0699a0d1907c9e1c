"""The effects of a plan as text and in its document: readable, escaped, equal to the schema, and the same when read back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from reconciler.documents import PLAN, read_plan
from reconciler.formats import plan_digest
from reconciler.formats.canonical import document_text
from reconciler.model.effect import OTHER, Effect, KnownAddress, KnownClient, Limit, PlanEffects
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import Action, Change, KeyChange, Plan, Reason
from reconciler.render.effects_text import group_sentence
from reconciler.render.markdown import view_markdown
from reconciler.render.plan_text import plan_view
from reconciler.render.terminal import plain
from reconciler.resolution.effects import effects_between
from tests.builders import client, ip, pair, plan, user
from tests.support.markdown_views import by_github
from tests.support.schemas import valid

KEY = "producer_byte_rate"
EVIL = "\x1b[2Jalice\n"

EFFECTS = PlanEffects(
    effects=(
        Effect(
            client=KnownClient(user=OTHER, client_id=OTHER),
            key=KEY,
            before=None,
            after=Limit(value=2.0**20, entity=user(), level=6),
        ),
        Effect(
            client=KnownClient(user=EVIL, client_id=""),
            key=KEY,
            before=Limit(value=2.0**21, entity=user(EVIL), level=3),
            after=Limit(value=2.0**20, entity=user(), level=6),
        ),
        Effect(
            client=KnownClient(user=EVIL, client_id=""),
            key="request_percentage",
            before=Limit(value=50.0, entity=user(EVIL), level=3),
            after=None,
        ),
        Effect(
            client=KnownAddress(ip="10.0.0.1"),
            key="connection_creation_rate",
            before=Limit(value=5.0, entity=ip("10.0.0.1"), level=1),
            after=Limit(value=5.0, entity=ip(), level=2),
        ),
    ),
    left_out=7,
)


def with_effects(effects: PlanEffects | None) -> Plan:
    key = KeyChange(key=KEY, before=None, after=2.0**20, reason=Reason.NOT_IN_CURRENT)
    changes = (Change(entity=user(), action=Action.CREATE, keys=(key,)),)
    return plan(*changes, effects=effects, digest=plan_digest("c1", changes))


def text(effects: PlanEffects | None) -> str:
    return plain(plan_view(with_effects(effects)).lines)


def squeezed(shown: str) -> list[str]:
    """The rows with one blank between words."""
    return [" ".join(row.split()) for row in shown.splitlines()]


def test_the_text_sets_changed_entities_against_affected_clients() -> None:
    shown = squeezed(text(EFFECTS))
    assert "Effects: 1 changed entity, at least 3 affected clients" in shown
    assert "producer_byte_rate unlimited -> 1 MiB/s from user=<default>, level 6 first limit" in shown
    assert 'user="\\u001b[2Jalice\\u000a" client-id=(none)' in shown
    assert any(row.startswith("request_percentage 50 % from") and row.endswith("-> unlimited limit removed") for row in shown)
    addresses = "5 connections/s from ip=10.0.0.1 -> 5 connections/s from ip=<default> same value from another entity"
    assert f"connection_creation_rate {addresses}" in shown
    assert "and 7 more effects not listed" in shown
    assert "\x1b" not in text(EFFECTS)


def test_clients_of_one_cause_are_one_sentence_in_text_markdown_and_document() -> None:
    before = {user(f"u{number}"): {"request_percentage": 5.0} for number in range(8)}
    consumer = "consumer_byte_rate"
    moved = effects_between(before, {**before, user(): {consumer: 2.0 * 2**20}})
    key = KeyChange(key=consumer, before=None, after=2.0 * 2**20, reason=Reason.NOT_IN_CURRENT)
    changes = (Change(entity=user(), action=Action.CREATE, keys=(key,)),)
    one = plan(*changes, effects=moved, digest=plan_digest("c1", changes))
    sentence = "10 clients get their first consumer limit, 2 MiB/s, from user=<default>"
    shown = plain(plan_view(one).lines)
    assert f"  {sentence}\n      user=(any other) client-id=(any other), " in shown
    assert "and 7 more\n" in shown
    assert shown.count("from user=<default>") == 1
    assert by_github(view_markdown(plan_view(one))).text().count(sentence) == 1
    document: Any = PLAN.write(one)
    valid(json.loads(document_text(document)), "plan")
    (group,) = document["effects"]["groups"]
    assert (group["clients"], group["direction"], group["key"]) == (10, "first_limit", consumer)
    assert group["after"]["entity"] == {"user": None}
    assert PLAN.build(json.loads(document_text(document))).effects == moved


DEFAULT_PAIR = pair(DEFAULT, DEFAULT)
LOWER = "get a lower producer limit, 2 B/s, from user=<default> (before 8 B/s, from user=<default>)"
HIGHER = "get a higher producer limit, 2 B/s, from user=<default> (before 1 B/s, from client-id=<default>)"
KEEP = f"keep a producer limit of 2 B/s, from {DEFAULT_PAIR} (before 2 B/s, from client-id=<default>)"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({user(): 8.0}, {user(): 2.0}, LOWER),
        ({client(): 1.0}, {user(): 2.0}, HIGHER),
        ({user(): 2.0}, {}, "lose their producer limit, 2 B/s, from user=<default>"),
        ({user("a"): 1.0, user("b"): 3.0}, {}, "4 clients lose their producer limit, 1 B/s to 3 B/s, of their own"),
        ({client(): 2.0}, {DEFAULT_PAIR: 2.0}, KEEP),
    ],
)
def test_each_direction_has_its_sentence(before: dict[Entity, float], after: dict[Entity, float], words: str) -> None:
    named = {pair(name, "x"): {"request_percentage": 1.0} for name in "ab"}
    sides = [named | {entity: {KEY: value} for entity, value in side.items()} for side in (before, after)]
    sentences = [group_sentence(group) for group in effects_between(*sides).groups]
    assert any(words in sentence for sentence in sentences), sentences


@pytest.mark.parametrize(
    "effects",
    [
        EFFECTS,
        PlanEffects(),
        PlanEffects(unknown="because"),
        None,
        PlanEffects(
            effects=(
                Effect(client=KnownAddress(ip=OTHER), key=KEY, before=Limit(value=math.inf, entity=ip(), level=2), after=None),
            )
        ),
    ],
)
def test_the_document_fits_its_schema_and_reads_back_the_same(effects: PlanEffects | None) -> None:
    one = with_effects(effects)
    written = PLAN.text(one)
    valid(json.loads(written), "plan")
    assert read_plan(written, name="plan.json") == one
    assert ("effects" in json.loads(written)) is (effects is not None)
