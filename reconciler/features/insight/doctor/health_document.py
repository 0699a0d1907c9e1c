"""The state of a traffic source as a JSON document (``schemas/doctor.v1.schema.json``)."""

from __future__ import annotations

from reconciler.documents import finding_to_json, severity_counts
from reconciler.features.insight.doctor.traffic_health import BrokerTraffic, TrafficHealth
from reconciler.formats import FORMAT_VERSION, Json, moment_to_json


def traffic_health_to_json(health: TrafficHealth) -> dict[str, Json]:
    """The document of ``doctor.v1``: times in UTC, intervals in seconds, ``coverage`` as a share from 0 to 1."""
    return {
        "format_version": FORMAT_VERSION,
        "source": health.source,
        "form": health.form.value,
        "since": moment_to_json(health.since) if health.since else None,
        "until": moment_to_json(health.until) if health.until else None,
        "layouts": [{"id": layout.id, "title": layout.title, "series": layout.series} for layout in health.layouts],
        "brokers": [_broker(broker) for broker in health.brokers],
        "unattributed": [
            {"reason": group.reason, "series": group.series, "example": group.example} for group in health.unattributed
        ],
        "findings": [finding_to_json(finding) for finding in health.findings],
        "repairs": [
            {"id": repair.id, "title": repair.title, "language": repair.language, "text": repair.text}
            for repair in health.repairs
        ],
        "notes": list(health.notes),
        "summary": dict(severity_counts(health.findings)),
    }


def _broker(traffic: BrokerTraffic) -> Json:
    return {
        "broker": traffic.broker,
        "exporters": list(traffic.exporters),
        "series": traffic.series,
        "clients": traffic.clients,
        "rows": traffic.rows,
        "kinds": list(traffic.kinds),
        "measures": list(traffic.measures),
        "start": moment_to_json(traffic.start) if traffic.start else None,
        "end": moment_to_json(traffic.end) if traffic.end else None,
        "interval_s": traffic.interval_s,
        "coverage": traffic.coverage,
        "gaps": [{"start": moment_to_json(gap.start), "end": moment_to_json(gap.end)} for gap in traffic.gaps],
        "restarts": [moment_to_json(at) for at in traffic.restarts],
    }
