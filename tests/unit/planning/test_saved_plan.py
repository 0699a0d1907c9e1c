"""Saved plans: what is read of them, what is refused, and how a difference is told."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from reconciler.documents import PLAN
from reconciler.errors import FileAccessError, StalePlanError
from reconciler.formats import plan_digest
from reconciler.model.entity import Entity
from reconciler.model.plan import Action, Change, KeyChange, Plan, Reason
from reconciler.model.state import ClusterIdentity
from reconciler.planning.saved_plan import differences, read_saved_plan, require_current
from tests.builders import pair, plan, user

RATE = "producer_byte_rate"


def change(entity: Entity, keys: dict[str, tuple[float | None, float | None]]) -> Change:
    made = (KeyChange(key=k, before=b, after=a, reason=Reason.VALUE_DIFFERS) for k, (b, a) in sorted(keys.items()))
    return Change(entity=entity, action=Action.UPDATE, keys=tuple(made))


def planned(*changes: Change, cluster_id: str = "c1") -> Plan:
    made = plan(*changes)
    identity = ClusterIdentity(name=made.cluster.name, id=cluster_id, kafka_version=made.cluster.kafka_version)
    return dataclasses.replace(made, cluster=identity, digest=plan_digest(cluster_id, changes))


def text(made: Plan, **fields: Any) -> str:
    return json.dumps({**PLAN.write(made), **fields})


FULL = planned(
    change(user("payments-api"), {RATE: (10.0, 20.0)}),
    change(user(), {"request_percentage": (None, 12.5)}),
    change(pair("<default>", "a b"), {RATE: (float("nan"), None)}),
)


def test_it_reads_back_and_says_what_differs() -> None:
    saved = read_saved_plan(PLAN.text(FULL), name="plan.json")
    assert list(differences(saved, FULL)) == []
    require_current(saved, FULL)
    now = planned(change(user("payments-api"), {RATE: (10.0, 30.0)}))
    assert tuple(differences(saved, now)) == (
        "user=payments-api producer_byte_rate: reviewed 10 -> 20, now 10 -> 30",
        "user=<default> request_percentage: reviewed not set -> 12.5, now no change",
        'user="<default>" client-id="a b" producer_byte_rate: reviewed NaN -> not set, now no change',
    )
    with pytest.raises(StalePlanError, match="reviewed 10 -> 20, now 10 -> 30"):
        require_current(saved, now)


def test_what_is_no_plan_or_shows_something_else_than_its_digest_stands_for_is_refused() -> None:
    with pytest.raises(FileAccessError, match=r"plan\.json is not a plan"):
        read_saved_plan("{}", name="plan.json")
    with pytest.raises(StalePlanError, match="was changed after it was written"):
        read_saved_plan(text(FULL, changes=[]), name="plan.json")


def test_a_plan_of_another_format_is_refused_as_stale() -> None:
    with pytest.raises(StalePlanError, match=r"format 2\.3, and this version reads format 1"):
        read_saved_plan(text(FULL, format_version="2.3"), name="plan.json")
    assert read_saved_plan(text(FULL, format_version="1.9"), name="plan.json").digest == FULL.digest


def test_a_plan_of_another_cluster_names_both() -> None:
    saved = read_saved_plan(text(planned(cluster_id="mine")), name="plan.json")
    with pytest.raises(StalePlanError, match="of cluster mine, and yours answers"):
        require_current(saved, planned(cluster_id="yours"))
