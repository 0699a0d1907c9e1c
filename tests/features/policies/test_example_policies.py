"""Each policy of ``examples/policies`` fires where it should, and is silent beside that."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.documents import PLAN
from reconciler.features.policies.judging import PolicyInput, check_expression, judge_policies
from reconciler.manifest.documents import RepositoryDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import PlanPolicy, PolicySeverity
from reconciler.model.entity import Entity
from reconciler.model.plan import Action, Change, GuardStatus, KeyChange, ManifestCommit, Reason
from reconciler.policy.guards import by_option
from tests.builders import cluster_spec, plan, user

FILE = Path(__file__).parents[3] / "examples" / "policies" / "kafka-quotas.yaml"
FRIDAY = datetime.datetime(2026, 1, 2, 10, tzinfo=datetime.UTC)
MONDAY = datetime.datetime(2026, 1, 5, 10, tzinfo=datetime.UTC)
COMMIT = ManifestCommit(commit="a1" * 20, dirty=False)
EDITED = ManifestCommit(commit="a1" * 20, dirty=True)


def examples() -> dict[str, PlanPolicy]:
    content = read_documents(FILE.read_bytes(), str(FILE))
    (document,) = content.documents
    assert content.findings == ()
    assert isinstance(document, RepositoryDocument)
    return {entry.policy.name: entry.policy for entry in document.policies}


POLICIES = examples()


def change(entity: Entity, before: float | None, after: float | None) -> Change:
    action = Action.CREATE if before is None else Action.DELETE if after is None else Action.UPDATE
    key = KeyChange(key="producer_byte_rate", before=before, after=after, reason=Reason.VALUE_DIFFERS)
    return Change(entity=entity, action=action, keys=(key,))


DEFAULT = user()


def violated(name: str, *changes: Change, now: datetime.datetime = MONDAY, source: ManifestCommit = COMMIT) -> bool:
    policy = POLICIES[name]
    about = PolicyInput(
        document=PLAN.write(plan(*changes, source=source)),
        changes=changes,
        owner_of=lambda entity: "payments",
        spec=cluster_spec(),
        now=now,
    )
    judged = judge_policies([policy], about, accepted=(), advice=by_option)
    if policy.severity is PolicySeverity.WARNING:
        return bool(judged.findings)
    (guard,) = judged.guards
    assert "could not be evaluated" not in guard.message
    return guard.status is GuardStatus.NEEDS_ACCEPTANCE


def test_every_expression_compiles() -> None:
    assert len(POLICIES) == 6
    for policy in POLICIES.values():
        assert [check_expression(each.text, policy.subject) for each in policy.expressions] == [()] * len(policy.expressions)


MANY = tuple(change(user(f"payments-{number}"), 1.0, 2.0) for number in range(51))
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "small-plans": ({"changes": MANY}, {"changes": MANY[:50]}),
    "friday-removals": (
        {"changes": (change(user("payments-a"), 1.0, None),), "now": FRIDAY},
        {"changes": (change(user("payments-a"), 1.0, None),), "now": MONDAY},
    ),
    "defaults-at-most-double": (
        {"changes": (change(DEFAULT, 10.0, 20.5),)},
        {"changes": (change(DEFAULT, 10.0, 20.0), change(DEFAULT, None, 9.0), change(user("payments-a"), 1.0, 100.0))},
    ),
    "owner-prefix": (
        {"changes": (change(user("orders-a"), 1.0, 2.0),)},
        {"changes": (change(user("payments-a"), 1.0, 2.0), change(DEFAULT, 1.0, 2.0))},
    ),
    "production-from-a-commit": ({"changes": MANY[:1], "source": EDITED}, {"changes": MANY[:1]}),
    "production-in-office-hours": ({"changes": MANY[:1], "now": MONDAY.replace(hour=3)}, {"changes": MANY[:1], "now": MONDAY}),
}


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_each_example_fires_and_is_silent_beside_that(name: str) -> None:
    fires, silent = CASES[name]
    assert violated(name, *fires["changes"], **{key: value for key, value in fires.items() if key != "changes"})
    assert not violated(name, *silent["changes"], **{key: value for key, value in silent.items() if key != "changes"})


def test_the_day_is_that_of_the_time_zone_in_the_policy() -> None:
    late_thursday_in_utc = datetime.datetime(2026, 1, 1, 23, 30, tzinfo=datetime.UTC)
    assert violated("friday-removals", change(user("payments-a"), 1.0, None), now=late_thursday_in_utc)
