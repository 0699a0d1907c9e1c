"""Tasks around quotas as plain functions: an Airflow task, a notebook cell or a test can call each of them.

Results are JSON and fit into an XCom. Errors are those of ``reconciler.errors``, so a refused write fails its task.
"""

from __future__ import annotations

from typing import Any

from reconciler.client import manifests

REPOSITORY = "/srv/kafka-quotas"


def plan_quotas(cluster: str, repository: str = REPOSITORY) -> dict[str, Any]:
    """The plan, for a reviewer and for ``apply_plan``."""
    planned = manifests([repository], cluster=cluster).plan()
    return {
        "plan": planned.to_json(),
        "changes": len(planned.plan.changes),
        "guards": sorted({guard.id for guard in planned.plan.tripped}),
    }


def apply_plan(planned: dict[str, Any], cluster: str, repository: str = REPOSITORY, accept: tuple[str, ...] = ()) -> str:
    """Write exactly the reviewed plan. Another plan by now, or a guard that is not accepted, is an error."""
    report = manifests([repository], cluster=cluster).apply(saved_plan=planned["plan"], accept=accept)
    return report.result.value


def check_drift(cluster: str, repository: str = REPOSITORY) -> list[dict[str, Any]]:
    """The differences between cluster and manifests: one row for each key."""
    rows = manifests([repository], cluster=cluster).drift().rows()
    return [{"entity": _entity(row), "key": row["key"], "declared": row["desired"], "live": row["live"]} for row in rows]


def _entity(row: dict[str, Any]) -> dict[str, str]:
    return {kind: str(row[kind]) for kind in ("user", "client-id", "ip") if row[kind] is not None}
