"""``spec.backtest`` and ``spec.capacity`` of a Cluster document. What the schema refused keeps its built-in meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.manifest.collector import Collector
from reconciler.manifest.fields import items, mapping, text, texts
from reconciler.manifest.quota_entries import quota_value
from reconciler.manifest.selectors import selector
from reconciler.model import KNOWN_KEYS, BacktestPolicy, FailRule, HistoryNeeds, OwnerChoice, QuotaKey, Verdict
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

_VERDICTS: Final = {verdict.value: verdict for verdict in Verdict}


def backtest_policy(node: YamlMapping | None, out: Collector) -> BacktestPolicy:
    """The rules as written, and the built-in needs for those that are not."""
    history, built_in = mapping(node, "history"), HistoryNeeds()
    return BacktestPolicy(
        history=HistoryNeeds(
            hours=_number(history, "hours", built_in.hours),
            coverage_percent=_number(history, "coveragePercent", built_in.coverage_percent),
        ),
        fail=tuple(_rules(items(node, "fail"), out)),
    )


def capacity(node: YamlMapping | None, out: Collector) -> dict[str, float]:
    """What one broker can do, by key."""
    found = {}
    for key in QuotaKey:
        written = node.items.get(key.value) if node else None
        value = quota_value(key, written, None, out) if isinstance(written, YamlScalar) and written.data is not None else None
        if value is not None:
            found[key.value] = value.value
    return found


def _rules(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[FailRule]:
    for node in nodes:
        verdicts = tuple(_VERDICTS[word] for word in texts(node, "verdicts") if word in _VERDICTS)
        if not isinstance(node, YamlMapping) or not verdicts:
            continue
        match = selector(node.items.get("match"), out)
        if "match" in node.items and match is None:
            # Without its selector it would fail far more than was written; what is wrong with it has been said.
            continue
        yield FailRule(
            verdicts=verdicts,
            owners=_owners(node.items.get("owners")),
            match=match,
            keys=tuple(key for key in texts(node, "keys") if key in KNOWN_KEYS),
            seconds=int(_number(node, "seconds", 1)),
            unchanged=node.data.get("unchanged") is True,
            reason=text(node, "reason"),
            span=out.span(node),
        )


def _owners(node: YamlNode | None) -> OwnerChoice | None:
    if node is None:
        return None
    labels = mapping(node, "labels")
    if labels is not None:
        return OwnerChoice(labels={label: value.text for label, value in labels.items.items() if isinstance(value, YamlScalar)})
    return OwnerChoice(names=tuple(one.text for one in getattr(node, "items", ()) if isinstance(one, YamlScalar)))


def _number(node: YamlMapping | None, name: str, built_in: float) -> float:
    value = node.data.get(name) if node else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else built_in
