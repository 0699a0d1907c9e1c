"""``spec.guards`` of a Cluster document: the limits of the guards. What the schema refused keeps its built-in limit."""

from __future__ import annotations

from reconciler.manifest.collector import Collector
from reconciler.manifest.fields import mapping
from reconciler.model import KNOWN_KEYS, CountLimit, GuardLimits, ReductionLimit, VolumeLimit
from reconciler.yaml import YamlMapping


def guard_limits(node: YamlMapping | None, out: Collector) -> GuardLimits:
    """The limits as written, and the built-in ones for the rest."""
    built_in = GuardLimits()
    return GuardLimits(
        too_many_removals=_volume(mapping(node, "too-many-removals"), built_in.too_many_removals, out),
        too_many_changes=_volume(mapping(node, "too-many-changes"), built_in.too_many_changes, out),
        large_reduction=_reduction(mapping(node, "large-reduction"), built_in.large_reduction, out),
        unknown_current_keys=_count(mapping(node, "unknown-current-keys"), out),
    )


def _volume(node: YamlMapping | None, built_in: VolumeLimit, out: Collector) -> VolumeLimit:
    if node is None:
        return built_in
    percent, count, minimum = _number(node, "percent"), _whole(node, "count"), _whole(node, "minimum")
    return VolumeLimit(
        percent=built_in.percent if percent is None else percent,
        count=built_in.count if count is None else count,
        minimum=built_in.minimum if minimum is None else minimum,
        set_in=out.span(node),
    )


def _reduction(node: YamlMapping | None, built_in: ReductionLimit, out: Collector) -> ReductionLimit:
    if node is None:
        return built_in
    factor, keys = _number(node, "factor"), mapping(node, "keys")
    factors = {key: value for key in (keys.items if keys else ()) if (value := _number(keys, key)) is not None}
    return ReductionLimit(
        factor=built_in.factor if factor is None else factor,
        keys={key: value for key, value in factors.items() if key in KNOWN_KEYS},
        set_in=out.span(node),
    )


def _count(node: YamlMapping | None, out: Collector) -> CountLimit:
    return CountLimit() if node is None else CountLimit(count=_whole(node, "count"), set_in=out.span(node))


def _number(node: YamlMapping | None, name: str) -> float | None:
    value = node.data.get(name) if node else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(node: YamlMapping, name: str) -> int | None:
    value = node.data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
