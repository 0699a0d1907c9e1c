"""Lint findings about precedence against brute force: what a finding says is so for every client of a small universe."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.quota import QuotaKey
from reconciler.model.state import DesiredEntity
from reconciler.policy.lint.precedence import Subject, overridden_client_ids
from tests.builders import declared, desired
from tests.support.quota_walk import limit_of

KEY = QuotaKey.CONSUMER_BYTE_RATE.value
NAMES = ("a", "b")
SHAPES = [(u, c) for u, c in itertools.product((None, DEFAULT, *NAMES), repeat=2) if (u, c) != (None, None)]
CLIENTS = list(itertools.product((*NAMES, "other"), (*NAMES, "other", "")))

Shape = tuple[EntityName | None, EntityName | None]
Table = dict[Shape, float]

TABLES = st.dictionaries(st.sampled_from(SHAPES), st.sampled_from([1.0, 2.0]), min_size=1, max_size=9)


def entity_of(shape: Shape) -> Entity:
    return Entity.of({t: n for t, n in zip(("user", "client-id"), shape, strict=True) if n is not None})


def subject_of(table: Table) -> Subject:
    entities: list[DesiredEntity] = [declared(entity_of(shape), **{KEY: value}) for shape, value in table.items()]
    return Subject(
        desired=desired(*entities),
        after={entity.entity: {QuotaKey(KEY): quota.value for quota in entity.quotas.values()} for entity in entities},
    )


@given(table=TABLES)
def test_a_client_id_that_never_wins_wins_for_no_client(table: Table) -> None:
    hopeless = {entity for hidden in overridden_client_ids(subject_of(table)).values() for entity in hidden}
    winners = {entity_of(hit.entity) for u, c in CLIENTS if (hit := limit_of(table, u, c))}
    assert not hopeless & winners
    client_ids = {entity_of(shape) for shape in table if shape[0] is None and shape[1] is not DEFAULT}
    assert {entity for entity in client_ids - winners if (DEFAULT, None) in table or (DEFAULT, DEFAULT) in table} <= hopeless
