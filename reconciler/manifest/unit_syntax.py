"""Values of manifests that are mappings: ``{clusterTotal: 60MiB}``, ``{shares: 2, of: 200MiB}`` and others."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from reconciler.formats import ValueRefusedError, parse_value
from reconciler.manifest.collector import Collector
from reconciler.model import (
    BudgetShare,
    ClusterTotal,
    Entity,
    Message,
    Proportional,
    QuotaKey,
    Shares,
    UnitQuota,
    WrittenUnit,
    compose,
    flag_part,
    key_part,
)
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

CLUSTER_TOTAL: Final = "clusterTotal"
SHARES: Final = "shares"
OF: Final = "of"
BUDGET: Final = "budget"
PROPORTIONAL: Final = "proportional"
TO: Final = "to"
TOPICS: Final = "topics"
_FIELDS: Final = {
    CLUSTER_TOTAL: frozenset({CLUSTER_TOTAL}),
    SHARES: frozenset({SHARES, OF}),
    BUDGET: frozenset({BUDGET}),
    PROPORTIONAL: frozenset({PROPORTIONAL, TO, TOPICS}),
}
_KNOWN: Final = frozenset().union(*_FIELDS.values())
_NO_TOTAL: Final = {
    QuotaKey.REQUEST_PERCENTAGE: "a percentage is of one thread of a broker. Write the percentage for each broker",
    QuotaKey.CONTROLLER_MUTATION_RATE: "only the active controller counts mutations, so its value is the total. Write the number",
}
_PERCENT: Final = re.compile(r"((?:0|[1-9][0-9]{0,2})(?:\.[0-9]{1,6})?) ?%")
_WHOLE: Final = 100
_COUNT: Final = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?")


def unit_quota(key: QuotaKey, node: YamlMapping, entity: Entity | None, out: Collector) -> UnitQuota | None:
    """A value that is a mapping. ``None``, and a finding, for one that cannot be used; also for what the schema refused."""
    unit = _unit(key, node, entity, out)
    if unit is None:
        return None
    text = ", ".join(f"{name}: {value.text}" for name, value in node.items.items() if isinstance(value, YamlScalar))
    return UnitQuota(unit=unit, source=out.span(node), text=text)


def _unit(key: QuotaKey, node: YamlMapping, entity: Entity | None, out: Collector) -> WrittenUnit | None:
    names = [name for name in _FIELDS if name in node.items]
    if len(names) != 1 or not node.items.keys() <= _FIELDS[names[0]]:
        if node.items and node.items.keys() <= _KNOWN:
            message = compose("write one of {total}, {shares}, {budget} and {proportional}", **_WORDS)
            out.add("invalid-unit", message, node, entity=entity, key=key.value)
        return None
    if names[0] == SHARES:
        return _shares(key, node, entity, out)
    if names[0] == BUDGET:
        return _budget_share(key, node, entity, out)
    if key in _NO_TOTAL:
        message = compose(
            "{key} takes no {total}: {why}", key=key_part(key.value), total=flag_part(CLUSTER_TOTAL), why=_NO_TOTAL[key]
        )
        out.add("unit-not-for-key", message, node, entity=entity, key=key.value)
        return None
    if names[0] == PROPORTIONAL:
        return _proportional(key, node, entity, out)
    value = _number(key, node.items[CLUSTER_TOTAL], entity, out)
    return None if value is None else ClusterTotal(value=value)


_WORDS: Final = {
    "total": flag_part("{clusterTotal: 60MiB}"),
    "shares": flag_part("{shares: 2, of: 200MiB}"),
    "budget": flag_part("{budget: 25%}"),
    "proportional": flag_part("{proportional: 60MiB, to: leaders}"),
}


def _proportional(key: QuotaKey, node: YamlMapping, entity: Entity | None, out: Collector) -> Proportional | None:
    """In proportion to the leaders of all topics (``to: leaders``), or of some (``topics: [...]``)."""
    listed = node.items.get(TOPICS)
    names = [item.text for item in listed.items if isinstance(item, YamlScalar)] if isinstance(listed, YamlSequence) else []
    if (TO in node.items) == (TOPICS in node.items) or (TOPICS in node.items and not names):
        message = compose(
            "write {proportional} or {topics}", topics=flag_part("{proportional: 60MiB, topics: [orders]}"), **_WORDS
        )
        out.add("invalid-unit", message, node, entity=entity, key=key.value)
        return None
    value = _number(key, node.items[PROPORTIONAL], entity, out)
    return None if value is None else Proportional(value=value, topics=tuple(dict.fromkeys(names)) or None)


def _shares(key: QuotaKey, node: YamlMapping, entity: Entity | None, out: Collector) -> Shares | None:
    written = node.items[SHARES]
    if not isinstance(written, YamlScalar):
        return None
    if not _COUNT.fullmatch(written.text) or not (count := Fraction(written.text)):
        message: Message = compose("{text} is not a number of shares. Write a number above 0", text=shown_part(written.text))
        out.add("invalid-unit", message, written, entity=entity, key=key.value)
        return None
    if OF not in node.items:
        return Shares(count=count)
    capacity = _number(key, node.items[OF], entity, out)
    return None if capacity is None else Shares(count=count, of=capacity)


def _budget_share(key: QuotaKey, node: YamlMapping, entity: Entity | None, out: Collector) -> BudgetShare | None:
    written = node.items[BUDGET]
    if not isinstance(written, YamlScalar):
        return None
    match = _PERCENT.fullmatch(written.text)
    percent = Fraction(match[1]) if match else None
    if not percent or percent > _WHOLE:
        message = compose(
            "{text} is not a part of a budget. Write a percentage above 0 % and up to 100 %, such as {example}",
            text=shown_part(written.text),
            example=flag_part("25%"),
        )
        out.add("invalid-unit", message, written, entity=entity, key=key.value)
        return None
    return BudgetShare(percent=percent)


def _number(key: QuotaKey, node: YamlNode, entity: Entity | None, out: Collector) -> float | None:
    if not isinstance(node, YamlScalar) or node.data is None:
        return None
    try:
        return parse_value(key, node.text).number
    except ValueRefusedError as refused:
        out.add(refused.id, str(refused), node, entity=entity, key=key.value)
        return None
