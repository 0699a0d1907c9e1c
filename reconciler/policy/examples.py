"""An example for every guard: a change that trips it, and one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Example, cluster_manifest, join_manifests, quota_manifest, quotas_manifest

_TWO: Final = "{producer_byte_rate: 2MiB}"
_ORDERS: Final = "user=orders producer_byte_rate=1048576"
_OTHERS: Final = tuple(f"user=batch-{n} producer_byte_rate=1048576" for n in range(1, 13))


def _batch(quotas: str, numbers: range = range(1, 13)) -> str:
    return quotas_manifest(*((f"{{user: batch-{n}}}", quotas) for n in numbers))


EXAMPLES: Final[Mapping[str, Example]] = {
    "default-entity": Example(
        bad=quota_manifest(_TWO, "{user: {default: true}}"),
        good=quota_manifest(_TWO, "{user: orders}"),
        live=("user=<default> producer_byte_rate=1048576",),
    ),
    "empty-desired-state": Example(
        bad=join_manifests(
            cluster_manifest(prune="always"), "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec: {quotas: []}\n"
        ),
        good=join_manifests(cluster_manifest(prune="always"), quota_manifest(_TWO)),
        live=(_ORDERS,),
    ),
    "freeze-window": Example(
        bad=join_manifests(
            cluster_manifest("freeze: [{from: 2020-01-01T00:00:00Z, reason: end of the year}]"), quota_manifest(_TWO)
        ),
        good=join_manifests(
            cluster_manifest("freeze: [{to: 2020-01-02T08:00:00Z, reason: end of the year}]"), quota_manifest(_TWO)
        ),
        live=(_ORDERS,),
    ),
    "large-reduction": Example(
        bad=quota_manifest("{producer_byte_rate: 20KiB}"), good=quota_manifest("{producer_byte_rate: 900KiB}"), live=(_ORDERS,)
    ),
    "protected-entity": Example(
        bad=join_manifests(cluster_manifest("protected: [{user: orders}]"), quota_manifest(_TWO)),
        good=join_manifests(cluster_manifest("protected: [{user: replicator}]"), quota_manifest(_TWO)),
        live=(_ORDERS,),
    ),
    "prune": Example(
        bad=join_manifests(cluster_manifest(prune="confirm"), quota_manifest(_TWO, "{user: payments}")),
        good=join_manifests(
            cluster_manifest(prune="confirm"), quotas_manifest(("{user: payments}", _TWO), ("{user: orders}", _TWO))
        ),
        live=(_ORDERS,),
    ),
    "too-many-changes": Example(bad=_batch(_TWO), good=_batch(_TWO, range(1, 5)), live=_OTHERS),
    "too-many-removals": Example(bad=_batch("{}"), good=_batch(_TWO, range(1, 5)), live=_OTHERS),
    "unknown-current-keys": Example(
        bad=join_manifests(cluster_manifest("guards: {unknown-current-keys: {count: 0}}"), quota_manifest(_TWO)),
        good=join_manifests(cluster_manifest("guards: {unknown-current-keys: {count: 5}}"), quota_manifest(_TWO)),
        live=("user=orders producer_byte_rate=1048576 fetch_record_rate=5",),
    ),
    "scope-overlap": Example(
        bad=join_manifests(
            cluster_manifest("clusterId: c1"),
            cluster_manifest("clusterId: c1").replace("name: prod", "name: prod-copy"),
            quota_manifest(_TWO),
        ),
        good=join_manifests(
            cluster_manifest("clusterId: c1"),
            cluster_manifest("clusterId: c1", "scope: {include: [{user: {prefix: batch-}}]}").replace(
                "name: prod", "name: prod-copy"
            ),
            quota_manifest(_TWO).replace("spec:\n", "spec:\n  clusters: [prod]\n"),
        ),
        live=(_ORDERS,),
    ),
}
"""By guard id."""
