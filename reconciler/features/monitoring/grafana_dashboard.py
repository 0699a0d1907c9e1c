"""A Grafana dashboard of the series that the rules record: rates with their limits, throttled groups, unused limits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from reconciler.model import CLIENT_KEYS, QuotaKey

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
_CHOSEN: Final = 'cluster="$cluster",broker=~"$broker",user=~"$user",client_id=~"$client_id"'
_GROUP: Final = "{{user}} {{client_id}} @ {{broker}}"
_TITLES: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: ("Produced", "Bps"),
    QuotaKey.CONSUMER_BYTE_RATE: ("Fetched", "Bps"),
    QuotaKey.REQUEST_PERCENTAGE: ("Request time in percent of a thread", "percent"),
    QuotaKey.CONTROLLER_MUTATION_RATE: ("Partition mutations", "mut/s"),
}
_THRESHOLDS: Final = {
    "mode": "absolute",
    "steps": [{"color": "green", "value": None}, {"color": "orange", "value": 0.8}, {"color": "red", "value": 1}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    kind: str
    title: str
    description: str
    queries: Sequence[tuple[str, str]]
    """PromQL and the legend."""
    unit: str
    size: tuple[int, int]
    instant: bool = False
    overrides: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any]
    thresholds: Mapping[str, Any] | None = None


def render_grafana_dashboard(cluster: str) -> str:
    """The JSON to import. ``cluster`` is chosen at first; the others of the same Prometheus can be."""
    document = {
        "title": "Kafka quotas",
        "uid": "kafka-quotas-limits",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "tags": ["kafka", "quotas"],
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": _variables(cluster)},
        "annotations": {"list": []},
        "panels": _placed(_panels()),
    }
    return json.dumps(document, indent=2) + "\n"


def _variables(cluster: str) -> list[dict[str, Any]]:
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    chosen = {
        "name": "cluster",
        "label": "Cluster",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({RATE}, cluster)", "refId": "clusters"},
        "current": {"text": cluster, "value": cluster},
        "refresh": 2,
    }
    return [source, chosen, *(_names(name, label) for name, label in _NAMES)]


_NAMES: Final = (("broker", "Broker"), ("user", "User"), ("client_id", "Client-id"))


def _names(name: str, label: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f'label_values({RATE}{{cluster="$cluster"}}, {name})', "refId": name},
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }


def _panels() -> list[_Panel]:
    plain = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    stat = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
    near = _Panel(
        kind="bargauge",
        title="Nearest to their limits",
        description="Rate divided by limit, of the twenty quota groups that are nearest.",
        queries=[(f"topk(20, {UTILIZATION}{{{_CHOSEN}}})", f"{_GROUP} {{{{key}}}}")],
        unit="percentunit",
        size=(16, 10),
        instant=True,
        options={"orientation": "horizontal", "displayMode": "basic", "reduceOptions": {"calcs": ["lastNotNull"]}},
        thresholds=_THRESHOLDS,
    )
    throttled = _Panel(
        kind="stat",
        title="Throttled quota groups",
        description="Quota groups that a broker throttled within the last minute.",
        queries=[(f"count({THROTTLE_TIME}{{{_CHOSEN}}}) or vector(0)", "throttled")],
        unit="short",
        size=(8, 5),
        options=stat,
    )
    muted = _Panel(
        kind="timeseries",
        title="Muted connections",
        description="Connections that brokers do not read from now. Some exporters leave them out.",
        queries=[(f'{MUTED}{{cluster="$cluster",broker=~"$broker"}}', "{{key}} @ {{broker}}")],
        unit="short",
        size=(8, 5),
        options=plain,
    )
    times = _Panel(
        kind="timeseries",
        title="Throttle time",
        description="Mean throttle of the last minute.",
        queries=[(f"{THROTTLE_TIME}{{{_CHOSEN}}}", f"{_GROUP} {{{{key}}}}")],
        unit="ms",
        size=(12, 8),
        options=plain,
    )
    unused = _Panel(
        kind="table",
        title="Limits without use",
        description=f"Limits for which {NEVER_USED} fires.",
        queries=[(f'ALERTS{{alertname="{NEVER_USED}",alertstate="firing",cluster="$cluster"}}', "{{entity}} {{key}}")],
        unit="short",
        size=(12, 8),
        instant=True,
        options={"showHeader": True},
    )
    limits = _Panel(
        kind="stat",
        title="Limits",
        description="Limits of users and client-ids in the rules.",
        queries=[(f'count({LIMIT}{{cluster="$cluster"}})', "limits")],
        unit="short",
        size=(24, 3),
        options=stat,
    )
    return [near, throttled, muted, *(_rate_panel(key, plain) for key in CLIENT_KEYS), times, unused, limits]


def _rate_panel(key: QuotaKey, options: Mapping[str, Any]) -> _Panel:
    """Rates as lines, and the limit of each as a dashed line."""
    title, unit = _TITLES[key]
    chosen = f'{{{_CHOSEN},key="{key.value}"}}'
    dashed = [
        {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
        {"id": "custom.fillOpacity", "value": 0},
        {"id": "color", "value": {"mode": "fixed", "fixedColor": "red"}},
    ]
    return _Panel(
        kind="timeseries",
        title=title,
        description=f"The twenty largest rates, and the {key.value} that limits them (dashed).",
        queries=[
            (f"topk(20, {RATE}{chosen})", _GROUP),
            (
                f"{GROUP_LIMIT}{chosen} and on (broker, user, client_id, key) topk(20, {RATE}{chosen})",
                f"limit of {_GROUP}: {{{{entity}}}}",
            ),
        ],
        unit=unit,
        size=(12, 8),
        options=options,
        overrides=[{"matcher": {"id": "byFrameRefID", "options": "B"}, "properties": dashed}],
    )


def _placed(panels: Sequence[_Panel]) -> list[dict[str, Any]]:
    """From left to right, in rows; a panel that fits below its left neighbour's top goes there."""
    made = []
    heights = [0] * _WIDTH
    for number, panel in enumerate(panels, start=1):
        width, height = panel.size
        x = min(range(_WIDTH - width + 1), key=lambda at: (max(heights[at : at + width]), at))
        y = max(heights[x : x + width])
        heights[x : x + width] = [y + height] * width
        made.append(_panel_to_json(number, panel, {"x": x, "y": y, "w": width, "h": height}))
    return made


def _panel_to_json(number: int, panel: _Panel, place: Mapping[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.thresholds is not None:
        defaults["thresholds"] = panel.thresholds
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": dict(place),
        "fieldConfig": {"defaults": defaults, "overrides": list(panel.overrides)},
        "options": dict(panel.options),
        "targets": [
            {
                "datasource": _SOURCE,
                "refId": "ABCDEFGH"[at],
                "expr": expr,
                "legendFormat": legend,
                **({"instant": True, "format": "table" if panel.kind == "table" else "time_series"} if panel.instant else {}),
            }
            for at, (expr, legend) in enumerate(panel.queries)
        ],
    }
