"""Tasks around quotas as plain functions: an Airflow task, a notebook cell or a test can call each of them.

Results are JSON and fit into an XCom. Errors are those of ``reconciler.errors``, so a refused write fails its task.
"""

from __future__ import annotations

from typing import Any

from reconciler.client import manifests, to_json

REPOSITORY = "/srv/kafka-quotas"


def plan_quotas(cluster: str, repository: str = REPOSITORY) -> dict[str, Any]:
    """The plan, for a reviewer and for ``apply_plan``."""
    planned = manifests([repository], cluster=cluster).plan()
    return {
        "plan": to_json(planned.plan),
        "changes": len(planned.plan.changes),
        "guards": sorted({guard.id for guard in planned.plan.tripped}),
    }


def apply_plan(planned: dict[str, Any], cluster: str, repository: str = REPOSITORY, accept: tuple[str, ...] = ()) -> str:
    """Write exactly the reviewed plan. Another plan by now, or a guard that is not accepted, is an error."""
    report = manifests([repository], cluster=cluster).apply(saved_plan=planned["plan"], accept=accept)
    return report.result.value


def check_drift(cluster: str, repository: str = REPOSITORY) -> list[dict[str, Any]]:
    """The differences between cluster and manifests: one row for each key."""
    drift = manifests([repository], cluster=cluster).drift()
    return [
        {"entity": str(each.entity), "key": key.key, "declared": key.desired, "live": key.live}
        for each in drift.entities
        if each.drift.is_difference
        for key in each.keys
    ]
