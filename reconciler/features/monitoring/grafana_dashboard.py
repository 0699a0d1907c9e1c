"""A Grafana dashboard of the series that the rules record: rates with their limits, throttled groups, unused limits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.features.monitoring.prometheus_rules import (
    GROUP_LIMIT,
    LIMIT,
    MUTED,
    NEVER_USED,
    RATE,
    THROTTLE_TIME,
    UTILIZATION,
)
from reconciler.model import QuotaKey

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
_CLUSTER: Final = 'cluster="$cluster"'
_CHOSEN: Final = _CLUSTER + ',broker=~"$broker",user=~"$user",client_id=~"$client_id"'
_GROUP: Final = "{{user}} {{client_id}} @ {{broker}}"
_LIST: Final[Mapping[str, Any]] = {
    "legend": {"displayMode": "list", "placement": "bottom"},
    "tooltip": {"mode": "multi", "sort": "desc"},
}
_LAST: Final[Mapping[str, Any]] = {"reduceOptions": {"calcs": ["lastNotNull"]}}
_STAT: Final[Mapping[str, Any]] = {**_LAST, "colorMode": "value"}
_DASHED: Final = [
    {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
    {"id": "custom.fillOpacity", "value": 0},
    {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}},
]
_THRESHOLDS: Final = {
    "mode": "absolute",
    "steps": [{"color": "green", "value": None}, {"color": "orange", "value": 0.8}, {"color": "red", "value": 1}],
}


@dataclass(frozen=True, slots=True)
class _Panel:
    """``queries``: PromQL and the legend. ``instant``: of the last moment only."""

    kind: str
    title: str
    description: str
    unit: str
    size: tuple[int, int]
    queries: Sequence[tuple[str, str]]
    options: Mapping[str, Any] = field(default_factory=lambda: _LIST)
    instant: bool = False
    overrides: Sequence[Mapping[str, Any]] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


def _rate_panel(key: QuotaKey, title: str, unit: str) -> _Panel:
    """Show rates as lines, and the limit of each as a dashed line."""
    rates = f'topk(20, {RATE}{{{_CHOSEN},key="{key.value}"}})'
    limits = f'{GROUP_LIMIT}{{{_CHOSEN},key="{key.value}"}} and on (broker, user, client_id, key) {rates}'
    return _Panel(
        "timeseries",
        title,
        f"The twenty largest rates, and the {key.value} that limits them (dashed).",
        unit,
        (12, 8),
        [(rates, _GROUP), (limits, f"limit of {_GROUP}: {{{{entity}}}}")],
        overrides=[{"matcher": {"id": "byFrameRefID", "options": "B"}, "properties": _DASHED}],
    )


_PANELS: Final = (
    _Panel(
        "bargauge",
        "Nearest to their limits",
        "Rate divided by limit, of the twenty quota groups that are nearest.",
        "percentunit",
        (16, 10),
        [(f"topk(20, {UTILIZATION}{{{_CHOSEN}}})", f"{_GROUP} {{{{key}}}}")],
        {"orientation": "horizontal", "displayMode": "basic", **_LAST},
        instant=True,
        defaults={"thresholds": _THRESHOLDS},
    ),
    _Panel(
        "stat",
        "Throttled quota groups",
        "Quota groups that a broker throttled within the last minute.",
        "short",
        (8, 5),
        [(f"count({THROTTLE_TIME}{{{_CHOSEN}}}) or vector(0)", "throttled")],
        _STAT,
    ),
    _Panel(
        "timeseries",
        "Muted connections",
        "Connections that brokers do not read from now. Some exporters leave them out.",
        "short",
        (8, 5),
        [(f'{MUTED}{{{_CLUSTER},broker=~"$broker"}}', "{{key}} @ {{broker}}")],
    ),
    _rate_panel(QuotaKey.PRODUCER_BYTE_RATE, "Produced", "Bps"),
    _rate_panel(QuotaKey.CONSUMER_BYTE_RATE, "Fetched", "Bps"),
    _rate_panel(QuotaKey.REQUEST_PERCENTAGE, "Request time in percent of a thread", "percent"),
    _rate_panel(QuotaKey.CONTROLLER_MUTATION_RATE, "Partition mutations", "mut/s"),
    _Panel(
        "timeseries",
        "Throttle time",
        "Mean throttle of the last minute.",
        "ms",
        (12, 8),
        [(f"{THROTTLE_TIME}{{{_CHOSEN}}}", f"{_GROUP} {{{{key}}}}")],
    ),
    _Panel(
        "table",
        "Limits without use",
        f"Limits for which {NEVER_USED} fires.",
        "short",
        (12, 8),
        [(f'ALERTS{{alertname="{NEVER_USED}",alertstate="firing",{_CLUSTER}}}', "{{entity}} {{key}}")],
        {"showHeader": True},
        instant=True,
    ),
    _Panel(
        "stat",
        "Limits",
        "Limits of users and client-ids in the rules.",
        "short",
        (24, 3),
        [(f"count({LIMIT}{{{_CLUSTER}}})", "limits")],
        _STAT,
    ),
)


def render_grafana_dashboard(cluster: str) -> str:
    """The JSON to import. ``cluster`` is chosen at first; the others of the same Prometheus can be."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    chosen = _variable("cluster", "Cluster", f"label_values({RATE}, cluster)", text=cluster, value=cluster)
    of_cluster = f"label_values({RATE}{{{_CLUSTER}}}, NAME)"
    names = (
        {
            **_variable(name, label, of_cluster.replace("NAME", name), text="All", value="$__all"),
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
        }
        for name, label in (("broker", "Broker"), ("user", "User"), ("client_id", "Client-id"))
    )
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
        "panels": _placed(_PANELS),
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


def _placed(panels: Sequence[_Panel]) -> list[dict[str, Any]]:
    """Place panels from left to right, in rows, each as high up as it fits, and return them as Grafana's JSON has them."""
    made = []
    heights = [0] * _WIDTH
    for number, panel in enumerate(panels, start=1):
        width, height = panel.size
        x = min(range(_WIDTH - width + 1), key=lambda at: (max(heights[at : at + width]), at))
        y = max(heights[x : x + width])
        heights[x : x + width] = [y + height] * width
        form = "table" if panel.kind == "table" else "time_series"
        instant: Mapping[str, Any] = {"instant": True, "format": form} if panel.instant else {}
        defaults: Mapping[str, Any] = {"unit": panel.unit, **panel.defaults}
        targets = [
            {"datasource": _SOURCE, "refId": ref, "expr": expr, "legendFormat": legend, **instant}
            for ref, (expr, legend) in zip("AB", panel.queries, strict=False)
        ]
        made.append(
            {
                "id": number,
                "type": panel.kind,
                "title": panel.title,
                "description": panel.description,
                "datasource": _SOURCE,
                "gridPos": {"x": x, "y": y, "w": width, "h": height},
                "fieldConfig": {"defaults": defaults, "overrides": list(panel.overrides)},
                "options": dict(panel.options),
                "targets": targets,
            }
        )
    return made
