"""Buckets of tokens from cells, whatever their order and batches."""

from __future__ import annotations

import random

import numpy as np
import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.judging.exact import tokens_by_seconds
from reconciler.traffic.judging.grouping import Series, group_series
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import keys_of
from reconciler.traffic.kernels.token_bucket import judge_seconds
from reconciler.traffic.kinds import KEY_OF_KIND, Kind

Cell = tuple[int, int, int]
QUOTAS = {Entity.of({"user": DEFAULT}): {"controller_mutation_rate": 2.0}}


@pytest.mark.parametrize("seed", range(5))
def test_cells_of_several_clients_come_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    names = [("ops", "a"), ("ops", "b"), ("dev", "a")]
    series = [
        Series(broker=1, kind=Kind.MUTATION, user=user, client_id=client, requests=9, amount=9, key=100 - number)
        for number, (user, client) in enumerate(names)
    ]
    tables = {key.value: Resolver(QUOTAS, key) for key in KEY_OF_KIND.values()}
    grouping = group_series(series, None, tables)
    cells = [(one.key, second, chance.randint(1, 40)) for one in series for second in range(0, 90, chance.randint(1, 9))]
    cells += [(7, 3, 1000)]
    chance.shuffle(cells)
    groups = range(len(grouping.groups))
    group_of = {client.key: of_one[0] for client, of_one in zip(series, grouping.groups_of_series, strict=True)}
    known = [(group_of[key], second, amount) for key, second, amount in cells if key in group_of]
    parts = (_columns(known[at : at + 11]) for at in range(0, len(known), 11))
    batches = ((keys_of(group, seconds), amounts) for group, seconds, amounts in parts)
    found = tokens_by_seconds(batches, grouping, groups, Window()).groups
    assert len(found) == 2, "one bucket a user"
    for number, target in enumerate(grouping.targets):
        mine = {series[member].key for member in target.members}
        _, seconds, amounts = _columns([cell for cell in cells if cell[0] in mine])
        assert found[number] == judge_seconds(number, seconds, amounts, (np.nan, 2.0), Window())


def _columns(cells: list[Cell]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    series, seconds, amounts = (np.asarray(column, dtype=np.int64) for column in zip(*cells, strict=True))
    return series, seconds, amounts
