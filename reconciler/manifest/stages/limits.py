"""Bounds of values that the Repository manifest sets: for an owner, for some entities, on some clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler.manifest.collector import finding
from reconciler.manifest.documents import ValueBounds, ValueLimit
from reconciler.manifest.stages.stage import Stage
from reconciler.model import ClusterSpec, DesiredEntity, DesiredQuota, Finding, QuotaKey, Related, compose, display_name
from reconciler.text import amount_part, shown_part


def limit_findings(entities: Iterable[DesiredEntity], limits: Sequence[ValueLimit], cluster: ClusterSpec) -> Iterator[Finding]:
    """Every value, overrides included, that is not within all limits that apply to it on this cluster."""
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
            message = compose(
                "{key} of {entity} is {quota}, {direction} the limit{whose}, {bound}",
                key=key,
                entity=declared.entity,
                quota=shown_part(quota.text) if quota.unit is None else amount_part(key.value, quota.value),
                direction=direction,
                whose=whose,
                bound=shown_part(bound.text),
            )
            related = [Related(span=bound.source, message="the limit")]
            place = quota.source
            if quota.profile is not None:
                # The entry is wrong: other entries may use the profile.
                related.append(Related(span=quota.source, message=f"the value of profile {display_name(quota.profile)}"))
                place = declared.source
            yield finding(rule_id, message, place, related=related, entity=declared.entity, key=key.value)


LIMITS: Final = Stage(
    applies=lambda manifests, _: bool(manifests.limits),
    run=lambda manifests, entities: limit_findings(entities.values(), manifests.limits, manifests.cluster),
)
