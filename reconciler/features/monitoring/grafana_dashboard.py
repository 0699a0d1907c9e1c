"""A Grafana dashboard of the series that the rules record: rates with their limits, and throttles."""

from __future__ import annotations

import json
from typing import Any, Final

from reconciler.features.monitoring.prometheus_rules import GROUP_LIMIT, RATE, THROTTLE_TIME, UTILIZATION
from reconciler.model import QuotaKey

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_SIZE: Final = {"w": 12, "h": 8}
_CLUSTER: Final = 'cluster="$cluster"'
_CHOSEN: Final = _CLUSTER + ',broker=~"$broker",user=~"$user",client_id=~"$client_id"'
_GROUP: Final = "{{user}} {{client_id}} @ {{broker}}"
_DASHED: Final = [
    {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
    {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}},
]


def _panel(title: str, description: str, unit: str, *queries: tuple[str, str], **more: Any) -> dict[str, Any]:
    """A panel of lines. ``queries``: PromQL and the legend. ``more``: fields of Grafana's in place of those of lines."""
    return {
        "type": "timeseries",
        "title": title,
        "description": description,
        "datasource": _SOURCE,
        "gridPos": _SIZE,
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {"datasource": _SOURCE, "refId": ref, "expr": expr, "legendFormat": legend}
            for ref, (expr, legend) in zip("AB", queries, strict=False)
        ],
        **more,
    }


def _rate_panel(key: QuotaKey, title: str, unit: str) -> dict[str, Any]:
    """Return rates as lines, and the limit of each as a dashed line."""
    rates = f'topk(20, {RATE}{{{_CHOSEN},key="{key.value}"}})'
    limits = f'{GROUP_LIMIT}{{{_CHOSEN},key="{key.value}"}} and on (broker, user, client_id, key) {rates}'
    dashed = {"matcher": {"id": "byFrameRefID", "options": "B"}, "properties": _DASHED}
    return _panel(
        title,
        f"The twenty largest rates, and the {key.value} that limits them (dashed).",
        unit,
        (rates, _GROUP),
        (limits, f"limit of {_GROUP}: {{{{entity}}}}"),
        fieldConfig={"defaults": {"unit": unit}, "overrides": [dashed]},
    )


_PANELS: Final = (
    _panel(
        "Nearest to their limits",
        "Rate divided by limit, of the twenty quota groups that are nearest.",
        "percentunit",
        (f"topk(20, {UTILIZATION}{{{_CHOSEN}}})", f"{_GROUP} {{{{key}}}}"),
    ),
    _panel(
        "Throttle time", "Mean throttle of the last minute.", "ms", (f"{THROTTLE_TIME}{{{_CHOSEN}}}", f"{_GROUP} {{{{key}}}}")
    ),
    _rate_panel(QuotaKey.PRODUCER_BYTE_RATE, "Produced", "Bps"),
    _rate_panel(QuotaKey.CONSUMER_BYTE_RATE, "Fetched", "Bps"),
    _rate_panel(QuotaKey.REQUEST_PERCENTAGE, "Request time in percent of a thread", "percent"),
    _rate_panel(QuotaKey.CONTROLLER_MUTATION_RATE, "Partition mutations", "mut/s"),
)


def render_grafana_dashboard(cluster: str) -> str:
    """The JSON to import. ``cluster`` is chosen at first; the others of the same Prometheus can be."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    chosen = _variable("cluster", "Cluster", f"label_values({RATE}, cluster)", text=cluster, value=cluster)
    names = [
        _variable(name, label, f"label_values({RATE}{{{_CLUSTER}}}, {name})", text="All", value="$__all")
        | {"includeAll": True, "multi": True, "allValue": ".*"}
        for name, label in (("broker", "Broker"), ("user", "User"), ("client_id", "Client-id"))
    ]
    places = [{"x": number % 2 * _SIZE["w"], "y": number // 2 * _SIZE["h"]} for number in range(len(_PANELS))]
    document = {
        "title": "Kafka quotas",
        "uid": "kafka-quotas-limits",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "tags": ["kafka", "quotas"],
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [source, chosen, *names]},
        "annotations": {"list": []},
        "panels": [
            panel | {"id": number, "gridPos": _SIZE | place}
            for number, (panel, place) in enumerate(zip(_PANELS, places, strict=True), start=1)
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _variable(name: str, label: str, query: str, **current: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "current": current,
        "refresh": 2,
    }
