"""The state of a traffic source as a JSON document (``schemas/doctor.v1.schema.json``)."""

from __future__ import annotations

from reconciler.documents.findings import finding_to_json, severity_counts
from reconciler.formats import FORMAT_VERSION, Json, moment_to_json
from reconciler.model import BrokerTraffic, TrafficHealth


def traffic_health_to_json(health: TrafficHealth) -> dict[str, Json]:
    """The whole examination."""
    return {
        "format_version": FORMAT_VERSION,
        "source": health.source,
        "form": health.form.value,
        "since": moment_to_json(health.since) if health.since else None,
        "until": moment_to_json(health.until) if health.until else None,
        "layouts": [{"id": one.id, "title": one.title, "series": one.series} for one in health.layouts],
        "brokers": [_broker(one) for one in health.brokers],
        "unattributed": [{"reason": one.reason, "series": one.series, "example": one.example} for one in health.unattributed],
        "findings": [finding_to_json(finding) for finding in health.findings],
        "repairs": [{"id": one.id, "title": one.title, "language": one.language, "text": one.text} for one in health.repairs],
        "notes": list(health.notes),
        "summary": dict(severity_counts(health.findings)),
    }


def _broker(one: BrokerTraffic) -> Json:
    return {
        "broker": one.broker,
        "exporters": list(one.exporters),
        "series": one.series,
        "clients": one.clients,
        "rows": one.rows,
        "kinds": list(one.kinds),
        "measures": list(one.measures),
        "start": moment_to_json(one.start) if one.start else None,
        "end": moment_to_json(one.end) if one.end else None,
        "interval_s": one.interval_s,
        "coverage": one.coverage,
        "gaps": [{"start": moment_to_json(gap.start), "end": moment_to_json(gap.end)} for gap in one.gaps],
        "restarts": [moment_to_json(at) for at in one.restarts],
    }
