"""What later steps of a pipeline want to know, as lines ``name=value``: for files such as GitLab's dotenv reports.

A value is on one line and has nothing in it that a shell, or a reader of such files, takes for its own: numbers, ``true`` and
``false``, digests, and ids. Names of clusters and entities are never here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reconciler.model import Drift, Finding, Plan, Severity


def plan_outputs(plan: Plan) -> str:
    """``digest``, ``changes`` and its parts (entities), ``applyable``, ``complete``, ``errored``, ``guards`` (ids, by commas)."""
    summary = plan.summary
    return _lines(
        {
            "digest": plan.digest,
            "changes": summary.changed,
            "create": summary.create,
            "update": summary.update,
            "delete": summary.delete,
            "unmanaged": summary.unmanaged,
            "applyable": plan.applyable,
            "complete": plan.complete,
            "errored": plan.errored,
            "guards": ",".join(guard.id for guard in plan.tripped),
            **_findings(plan.findings),
        }
    )


def findings_outputs(findings: Sequence[Finding]) -> str:
    """``errors``, ``warnings`` and ``infos``."""
    return _lines(_findings(findings))


def drift_outputs(drift: Drift) -> str:
    """``drifted``, ``complete``, how many entities are in each class, and how many unmanaged ones the scope contains."""
    counts = {each.value.replace("-", "_"): count for each, count in drift.counts.items()}
    in_scope = len(drift.unmanaged_in_scope)
    return _lines({"drifted": drift.differs, "complete": drift.complete, **counts, "unmanaged_in_scope": in_scope})


def _findings(findings: Sequence[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings)
    return {f"{severity.value}s": counts[severity] for severity in Severity}


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}\n" for name, value in values.items())
