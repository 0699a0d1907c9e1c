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
...     state = quotas.read()
>>> state.resolve(entity(user="payments", client_id="app")).quotas["producer_byte_rate"].value
20000000.0
>>> state.resolve(entity(user="other", client_id="app")).quotas["producer_byte_rate"].level
6

Change one entity: first as a plan, with its guards, then for good. ``apply`` returns only when every broker shows the change, and
raises otherwise. An entity within the scope of manifests belongs there, and is refused unless ``managed-entity`` is accepted:

>>> with connect("b1:9092") as quotas:
...     change = quotas.plan_alter(entity(user="reports"), add={"producer_byte_rate": "2MiB"})
...     report = change.apply()
>>> report.verified
True

Plan and apply manifests, as the commands do, with the same guards. ``docs/from-python.md`` has an Airflow DAG:

>>> quotas = manifests(["quotas"], cluster="prod")
>>> planned = quotas.plan()
>>> print(planned.plan.summary.update, [guard.id for guard in planned.tripped])
1 []
>>> planned.apply().verified
True

No cluster at hand? ``open_snapshot`` and ``open_manifests`` answer the same questions. ``after_plan`` shows what would apply once
manifests are applied, and ``compare`` whose limits differ between any two of them.

In a notebook on Spark, ``backtest_frame`` replays recorded traffic: ``docs/from-python.md`` has the whole example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.client.live import ClusterQuotas, PlannedAlteration, connect
    from reconciler.client.manifest_cluster import ManifestCluster, manifests
    from reconciler.client.naming import ANY, NAMED, entity, matching, prefix
    from reconciler.client.outcomes import BacktestFrames, Description, Differences, FoundDrift, JudgedTraffic, PlannedManifests
    from reconciler.client.recorded import RecordedQuotas, after_plan, compare, open_manifests, open_snapshot
    from reconciler.model import (
        DEFAULT,
        OTHER,
        RECOMMENDATIONS_SCHEMA,
        TRAFFIC_SCHEMA,
        VERDICTS_SCHEMA,
        Action,
        ApplyReport,
        ApplyResult,
        Change,
        ChangeOutcome,
        ChangeStatus,
        ClusterIdentity,
        Direction,
        Drift,
        DriftClass,
        Effect,
        Entity,
        FrameColumn,
        FrameSchema,
        GuardResult,
        GuardStatus,
        KeyChange,
        KnownAddress,
        KnownClient,
        Limit,
        MatchKind,
        Observed,
        ObservedFrom,
        Plan,
        QuotaKey,
        Reason,
        Selector,
        TypeMatch,
    )
    from reconciler.resolution import (
        Candidate,
        ClientDifference,
        KeyAnswer,
        QuotaView,
        Resolution,
        Rung,
        RungStatus,
        SharedWith,
        ViewKind,
    )

__all__ = [
    "ANY",
    "DEFAULT",
    "NAMED",
    "OTHER",
    "RECOMMENDATIONS_SCHEMA",
    "TRAFFIC_SCHEMA",
    "VERDICTS_SCHEMA",
    "Action",
    "ApplyReport",
    "ApplyResult",
    "BacktestFrames",
    "Candidate",
    "Change",
    "ChangeOutcome",
    "ChangeStatus",
    "ClientDifference",
    "ClusterIdentity",
    "ClusterQuotas",
    "Description",
    "Differences",
    "Direction",
    "Drift",
    "DriftClass",
    "Effect",
    "Entity",
    "FoundDrift",
    "FrameColumn",
    "FrameSchema",
    "GuardResult",
    "GuardStatus",
    "JudgedTraffic",
    "KeyAnswer",
    "KeyChange",
    "KnownAddress",
    "KnownClient",
    "Limit",
    "ManifestCluster",
    "MatchKind",
    "Observed",
    "ObservedFrom",
    "Plan",
    "PlannedAlteration",
    "PlannedManifests",
    "QuotaKey",
    "QuotaView",
    "Reason",
    "RecordedQuotas",
    "Resolution",
    "Rung",
    "RungStatus",
    "Selector",
    "SharedWith",
    "TypeMatch",
    "ViewKind",
    "after_plan",
    "compare",
    "connect",
    "entity",
    "manifests",
    "matching",
    "open_manifests",
    "open_snapshot",
    "prefix",
]

if not TYPE_CHECKING:  # a type checker would take every name for one of these
    __getattr__ = lazy_face(__name__)


def __dir__() -> list[str]:
    return list(__all__)
