"""The checks of ``doctor`` as a JSON document (``schemas/checkup.v1.schema.json``)."""

from __future__ import annotations

from reconciler.features.insight.doctor.checks import Checkup, DoctorCheck
from reconciler.formats import FORMAT_VERSION, Json


def checkup_to_json(checkup: Checkup) -> dict[str, Json]:
    """The document of ``checkup.v1``."""
    return {
        "format_version": FORMAT_VERSION,
        "version": checkup.version,
        "cluster": checkup.cluster,
        "checks": [_check(check) for check in checkup.checks],
        "summary": dict(checkup.counts),
    }


def _check(check: DoctorCheck) -> Json:
    return {"id": check.id, "status": check.status.value, "message": str(check.message), "remedy": check.remedy}
