"""The checks of a producer's rows as a JSON document (``schemas/traffic-check.v1.schema.json``)."""

from __future__ import annotations

from reconciler.formats import FORMAT_VERSION, Json, moment_to_json
from reconciler.model import CheckState, ContractReport


def contract_to_json(report: ContractReport) -> dict[str, Json]:
    """The whole report."""
    return {
        "format_version": FORMAT_VERSION,
        "source": report.source,
        "schema_version": report.schema_version,
        "rows": report.rows,
        "start": moment_to_json(report.start) if report.start else None,
        "end": moment_to_json(report.end) if report.end else None,
        "checks": [
            {
                "id": check.id,
                "state": check.state.value,
                "message": str(check.message),
                "rows": check.rows,
                "example": check.example,
            }
            for check in report.checks
        ],
        "summary": {state.value: report.count(state) for state in CheckState},
    }
