"""Kafka client quotas from Python: describe, resolve, alter, plan, apply and judge, as the commands of the same names do.

Everything is synchronous, takes and returns frozen dataclasses, and prints nothing. Progress of a write goes to the logger
``reconciler.client``. Errors are those of ``reconciler.errors``, all of them children of ``ReconcilerError``. Values are per
broker, as in Kafka.

Look at a cluster:

>>> with connect("b1:9092") as quotas:
...     found = quotas.describe(matching(user=NAMED, strict=True))
>>> for one, values in sorted(found.entities.items(), key=lambda row: str(row[0])):
...     print(one, values)
user=payments {'consumer_byte_rate': 40000000.0, 'producer_byte_rate': 20000000.0}

Ask who is limited by what. ``read`` once for many questions:

>>> with connect("b1:9092") as quotas:
...     answers = quotas.read().answers()
>>> answers.answer(entity(user="payments", client_id="app")).quotas["producer_byte_rate"].value
20000000.0
>>> answers.answer(entity(user="other", client_id="app")).quotas["producer_byte_rate"].level
6

Change one entity: first as a plan, with its guards, then for good. ``apply`` returns only when every broker shows the change, and
raises otherwise. An entity within the scope of manifests belongs there, and is refused unless ``managed-entity`` is accepted:

>>> with connect("b1:9092") as quotas:
...     change = quotas.plan_alter({entity(user="reports"): {"producer_byte_rate": "2MiB"}})
...     report = change.apply()
>>> report.verified
True

Plan and apply manifests, as the commands do, with the same guards. ``docs/from-python.md`` has an Airflow DAG:

>>> quotas = manifests(["quotas"], cluster="prod")
>>> planned = quotas.plan()
>>> print(planned.plan.summary.update, [guard.id for guard in planned.plan.tripped])
1 []
>>> planned.apply().verified
True

No cluster at hand? ``manifests(..., snapshot="now.json").state("planned")`` shows what would apply once manifests are applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

# ruff: noqa: I001 - 'as' marks a name as public for type checkers, and would stand in an import of its own
if TYPE_CHECKING:
    from reconciler.client.live import ClusterQuotas as ClusterQuotas, connect as connect
    from reconciler.client.manifest_cluster import ManifestCluster as ManifestCluster, manifests as manifests
    from reconciler.client.naming import ANY as ANY, NAMED as NAMED, entity as entity, matching as matching, prefix as prefix
    from reconciler.client.outcomes import PlannedChange as PlannedChange, to_json as to_json, verdict_rows as verdict_rows
    from reconciler.model import (
        DEFAULT as DEFAULT,
        OTHER as OTHER,
        TRAFFIC_SCHEMA as TRAFFIC_SCHEMA,
        Action as Action,
        ApplyReport as ApplyReport,
        ApplyResult as ApplyResult,
        BacktestReport as BacktestReport,
        Change as Change,
        ChangeOutcome as ChangeOutcome,
        ChangeStatus as ChangeStatus,
        ClusterIdentity as ClusterIdentity,
        CurrentState as CurrentState,
        Direction as Direction,
        Drift as Drift,
        DriftClass as DriftClass,
        Effect as Effect,
        Entity as Entity,
        FrameColumn as FrameColumn,
        GuardResult as GuardResult,
        GuardStatus as GuardStatus,
        KeyChange as KeyChange,
        KnownAddress as KnownAddress,
        KnownClient as KnownClient,
        Limit as Limit,
        MatchKind as MatchKind,
        Observed as Observed,
        ObservedFrom as ObservedFrom,
        Plan as Plan,
        QuotaKey as QuotaKey,
        Reason as Reason,
        Selector as Selector,
        TypeMatch as TypeMatch,
    )
    from reconciler.resolution import (
        Candidate as Candidate,
        EffectiveQuotas as EffectiveQuotas,
        KeyAnswer as KeyAnswer,
        QuotaView as QuotaView,
        Resolution as Resolution,
        Rung as Rung,
        RungStatus as RungStatus,
        ViewKind as ViewKind,
    )

_public = lazy_face(__name__)
if not TYPE_CHECKING:  # a type checker would take every name for one of these
    __getattr__ = _public


def __dir__() -> object:
    return _public("__all__")
