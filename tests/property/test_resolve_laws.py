"""EffectiveQuotas of ``resolve`` against a plain telling of Kafka's rules, and laws that hold for any quotas."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.resolution.effective_quotas import KEYS, EffectiveQuotas, RungStatus
from tests.support.quota_walk import Names, limit_of, tags_of

Table = Mapping[Names, Mapping[str, float]]

NAMES = ["a", "b", "<default>"]
PARTS: list[EntityName | None] = [None, DEFAULT, *NAMES]
SHAPES = [(u, c) for u in PARTS for c in PARTS if (u, c) != (None, None)]

tables = st.dictionaries(
    st.sampled_from(SHAPES),
    st.dictionaries(st.sampled_from(KEYS), st.integers(1, 9).map(float), min_size=1, max_size=4),
    max_size=8,
)
asked_users = st.sampled_from([None, DEFAULT, *NAMES, "stranger"])
asked_client_ids = st.sampled_from([None, "", DEFAULT, *NAMES, "stranger"])


def entity_of(user: EntityName | None, client_id: EntityName | None) -> Entity:
    return Entity.of({t: n for t, n in (("user", user), ("client-id", client_id)) if n is not None})


def quotas_of(table: Table) -> dict[Entity, dict[str, float]]:
    return {entity_of(*shape): dict(values) for shape, values in table.items()}


def of_key(table: Table, key: str) -> dict[Names, float]:
    return {shape: values[key] for shape, values in table.items() if key in values}


def stands_for(user: EntityName | None, client_id: EntityName | None) -> tuple[str, str]:
    """The names of one client of those that a question is about; a stranger's stand for any that no quota names."""
    return ("some user" if user is None or user is DEFAULT else user), (
        "" if client_id is None else "some id" if client_id is DEFAULT else client_id
    )


def question(user: EntityName | None, client_id: EntityName | None) -> Entity:
    return entity_of(DEFAULT if (user, client_id) == (None, None) else user, client_id)


def shown_tags(tags: tuple[str, str]) -> dict[str, str | None]:
    names = {"some user": None, "some id": None}
    return {t: names.get(n, n) for t, n in zip(("user", "client-id"), tags, strict=True) if n}


@given(table=tables, user=asked_users, client_id=asked_client_ids)
def test_values_buckets_and_what_is_unlimited_are_those_of_the_walk(
    table: Table, user: EntityName | None, client_id: EntityName | None
) -> None:
    answer = EffectiveQuotas(quotas_of(table)).answer(question(user, client_id))
    names = stands_for(user, client_id)
    for key in KEYS:
        expected = limit_of(of_key(table, key), *names)
        if expected is None:
            assert key not in answer.quotas
            continue
        found = answer.quotas[key]
        assert (found.value, entity_of(*expected.entity)) == (expected.value, found.source)
        assert found.bucket == shown_tags(tags_of(of_key(table, key), *names))


@given(
    table=tables,
    gone=st.sets(st.sampled_from([1, 2, 4])),
    user=st.sampled_from([*NAMES, "x"]),
    client_id=st.sampled_from(["", *NAMES, "x"]),
)
def test_kinds_that_an_old_broker_remembers_move_no_limited_client_to_another_bucket(
    table: Table, gone: set[int], user: str, client_id: str
) -> None:
    for key in KEYS:
        rules = of_key(table, key)
        if limit_of(rules, user, client_id) is not None:
            assert tags_of(rules, user, client_id, remembered=gone) == tags_of(rules, user, client_id, remembered=())


@given(table=tables, user=asked_users, client_id=asked_client_ids)
def test_what_is_hidden_holds_in_turn_as_the_winners_are_taken_away(
    table: Table, user: EntityName | None, client_id: EntityName | None
) -> None:
    asked = question(user, client_id)
    for key, found in EffectiveQuotas(quotas_of(table)).answer(asked, explain=True).quotas.items():
        left, in_turn = quotas_of(table), []
        while (winner := EffectiveQuotas(left).answer(asked).quotas.get(key)) is not None:
            in_turn.append((winner.source, winner.value, winner.level))
            del left[winner.source][key]
        assert found.overridden is not None
        assert in_turn == [(found.source, found.value, found.level), *((o.entity, o.value, o.level) for o in found.overridden)]


@given(table=tables, user=asked_users, client_id=asked_client_ids)
def test_the_ladder_has_eight_rungs_and_tells_what_the_answer_tells(
    table: Table, user: EntityName | None, client_id: EntityName | None
) -> None:
    quotas = quotas_of(table)
    answer = EffectiveQuotas(quotas).answer(question(user, client_id), explain=True)
    assert answer.ladder is not None
    assert tuple(answer.ladder) == KEYS
    for key, rungs in answer.ladder.items():
        found = answer.quotas.get(key)
        assert [rung.level for rung in rungs] == list(range(1, 9))
        hits = [(rung.entity, rung.value, rung.level) for rung in rungs if rung.status is RungStatus.WINS]
        hidden = [(rung.entity, rung.value, rung.level) for rung in rungs if rung.status is RungStatus.HIDDEN]
        assert hits == ([] if found is None else [(found.source, found.value, found.level)])
        assert hidden == ([] if found is None else [(o.entity, o.value, o.level) for o in found.overridden or ()])
        for rung in rungs:
            held = None if rung.entity is None else quotas.get(rung.entity, {}).get(key)
            assert rung.value == held
            if rung.status is RungStatus.UNSET:
                # Setting it makes it win, unless something stronger is set: every rung that is drawn as free can be used.
                assert rung.entity is not None
                more = {**quotas, rung.entity: {**quotas.get(rung.entity, {}), key: 77.0}}
                level = EffectiveQuotas(more).answer(answer.entity).quotas[key].level
                assert level == min(rung.level, found.level if found else 9)
            if rung.status is RungStatus.NOT_APPLICABLE and rung.entity is not None:
                more = {**quotas, rung.entity: {**quotas.get(rung.entity, {}), key: 77.0}}
                assert EffectiveQuotas(more).answer(answer.entity).quotas.get(key) == EffectiveQuotas(quotas).answer(
                    answer.entity
                ).quotas.get(key)


@given(table=tables)
def test_every_entity_of_a_state_is_among_its_known_clients(table: Table) -> None:
    answers = EffectiveQuotas(quotas_of(table))
    asked = list(answers.known_clients())
    assert {entity for entity, _ in asked} >= set(answers.quotas)
    # What holds for a listed user's other client ids is in the list too, or the same as without one.
    for entity, _ in asked:
        if entity.types == ("user",):
            others = Entity.of({**dict(entity.parts), "client-id": DEFAULT})
            same = [(k, a.source) for k, a in answers.answer(entity).quotas.items()] == [
                (k, a.source) for k, a in answers.answer(others).quotas.items()
            ]
            assert same or others in {e for e, _ in asked}
