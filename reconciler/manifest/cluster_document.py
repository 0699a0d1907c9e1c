"""Cluster documents into the model's ``ClusterSpec``, and the Repository document."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Final

from reconciler.manifest.backtest_settings import backtest_policy, capacity
from reconciler.manifest.broker_model import broker_settings, quota_callback
from reconciler.manifest.collector import Collector
from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.fields import items, mapping, scalar, text, texts
from reconciler.manifest.freeze_windows import freeze_windows
from reconciler.manifest.guard_settings import guard_limits
from reconciler.manifest.selectors import selector, selectors
from reconciler.model import Acceptance, ClusterSpec, Connection, Prune, Scope
from reconciler.text import shown
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

_PRUNE: Final = {prune.value: prune for prune in Prune}


def cluster(root: YamlMapping, out: Collector) -> ClusterDocument:
    """A Cluster document, as far as it can be understood."""
    metadata, spec = mapping(root, "metadata"), mapping(root, "spec")
    labels = mapping(metadata, "labels")
    scope = mapping(spec, "scope")
    made = ClusterSpec(
        name=text(metadata, "name"),
        labels={k: v.text for k, v in labels.items.items() if isinstance(v, YamlScalar)} if labels else {},
        cluster_id=text(spec, "clusterId"),
        connection=_connection(mapping(spec, "connection"), out),
        scope=Scope(
            include=selectors(scope.items.get("include") if scope else None, out),
            exclude=selectors(scope.items.get("exclude") if scope else None, out),
        ),
        prune=_PRUNE.get(text(spec, "prune") or "", Prune.NEVER),
        protected=selectors(spec.items.get("protected") if spec else None, out),
        guards=guard_limits(mapping(spec, "guards"), out),
        freeze=freeze_windows(spec, out),
        accept=tuple(_acceptances(items(spec, "accept"), out)),
        backtest=backtest_policy(mapping(spec, "backtest"), out),
        capacity=capacity(mapping(spec, "capacity"), out),
        broker_settings=broker_settings(mapping(spec, "brokerSettings")),
        quota_callback=quota_callback(mapping(spec, "quotaCallback")),
        span=out.span(root),
        places={name: out.span(node) for name, node in spec.items.items()} if spec else {},
    )
    return ClusterDocument(file=out.file, span=out.span(root), spec=made)


def _connection(node: YamlMapping | None, out: Collector) -> Connection | None:
    if node is None:
        return None
    connection = Connection(
        bootstrap_servers=texts(node, "bootstrapServers"), properties=text(node, "properties"), zookeeper=text(node, "zookeeper")
    )
    if connection.bootstrap_servers and connection.zookeeper:
        out.add("conflicting-connection", "give bootstrapServers or zookeeper, not both", node)
    return connection


def _acceptances(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[Acceptance]:
    for node in nodes:
        guard, reason, until = text(node, "guard"), text(node, "reason"), scalar(node, "until")
        if guard is None or reason is None or until is None:
            continue
        try:
            day = datetime.date.fromisoformat(until.text)
        except ValueError:
            out.add("invalid-date", f"{shown(until.text)} is not a day written as YYYY-MM-DD", until)
            continue
        match = node.items.get("match") if isinstance(node, YamlMapping) else None
        chosen = selector(match, out)
        if match is not None and chosen is None:
            # Without its selector it would accept far more than was written.
            continue
        yield Acceptance(guard=guard, reason=reason, until=day, match=chosen, span=out.span(node))
