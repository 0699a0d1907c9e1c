"""Limits of the Repository document: the smallest and the largest value that may be declared, per key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconciler.manifest.collector import finding
from reconciler.manifest.documents import ValueBounds, ValueLimit
from reconciler.model import ClusterSpec, DesiredEntity, DesiredQuota, Finding, QuotaKey, Related, display_name
from reconciler.text import shown


def limit_findings(entities: Iterable[DesiredEntity], limits: Sequence[ValueLimit], cluster: ClusterSpec) -> Iterator[Finding]:
    """Every value, overrides included, that is not within all limits that hold for it on this cluster."""
    here = [limit for limit in limits if limit.clusters is None or limit.clusters.chooses(cluster)]
    for declared in entities if here else ():
        for limit in here:
            if limit.owner is not None and limit.owner != declared.owner:
                continue
            if limit.match is None or limit.match.matches(declared.entity):
                for key, bounds in limit.keys.items():
                    quota = declared.quotas.get(key)
                    if quota is not None:
                        yield from _beyond(declared, key, quota, bounds, limit)


def _beyond(
    declared: DesiredEntity, key: QuotaKey, quota: DesiredQuota, bounds: ValueBounds, limit: ValueLimit
) -> Iterator[Finding]:
    whose = f" of {display_name(limit.owner)}" if limit.owner is not None else ""
    for rule_id, bound, beyond in (
        ("above-limit", bounds.most, bounds.most is not None and quota.value > bounds.most.value),
        ("below-limit", bounds.least, bounds.least is not None and quota.value < bounds.least.value),
    ):
        if bound is not None and beyond:
            direction = rule_id.partition("-")[0]
            message = f"{key} of {declared.entity} is {shown(quota.text)}, {direction} the limit{whose}, {shown(bound.text)}"
            related = Related(span=bound.source, message="the limit")
            yield finding(rule_id, message, quota.source, related=[related], entity=declared.entity, key=key.value)
