"""An example for every guard and every lint rule: manifests that trip it, and manifests that do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Example, cluster_manifest, join_manifests, quota_manifest, quotas_manifest

_TWO: Final = "{producer_byte_rate: 2MiB}"
_ORDERS: Final = "user=orders producer_byte_rate=1048576"
_OTHERS: Final = tuple(f"user=batch-{n} producer_byte_rate=1048576" for n in range(1, 13))


def _batch(quotas: str, numbers: range = range(1, 13)) -> str:
    return quotas_manifest(*((f"{{user: batch-{n}}}", quotas) for n in numbers))


GUARD_EXAMPLES: Final[Mapping[str, Example]] = {
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


_ONE: Final = "{producer_byte_rate: 1MiB}"
_FIVE: Final = "{producer_byte_rate: 5MiB}"
_DEFAULT_USER: Final = "{user: {default: true}}"
_PROTECTED: Final = cluster_manifest("protected: [{user: replicator}]")

LINT_EXAMPLES: Final[Mapping[str, Example]] = {
    "default-hides-client-ids": Example(
        bad=quotas_manifest((_DEFAULT_USER, _ONE), ("{client-id: etl}", _FIVE)),
        good=quotas_manifest((_DEFAULT_USER, _ONE), ("{user: {default: true}, client-id: etl}", _FIVE)),
    ),
    "client-id-never-wins": Example(
        bad=quota_manifest(_FIVE, "{client-id: etl}"),
        good=quota_manifest(_FIVE, "{user: {default: true}, client-id: etl}"),
        live=("user=<default> producer_byte_rate=1048576",),
    ),
    "default-client-multiplies": Example(
        bad=quota_manifest(_ONE, "{user: orders, client-id: {default: true}}"),
        good=quota_manifest(_ONE, "{user: orders}"),
    ),
    "user-cap-bypassed": Example(
        bad=quotas_manifest(("{user: orders}", _FIVE), ("{user: orders, client-id: {default: true}}", _ONE)),
        good=quota_manifest(_FIVE, "{user: orders}"),
    ),
    "default-captures-protected": Example(
        bad=join_manifests(_PROTECTED, quota_manifest(_ONE, _DEFAULT_USER)),
        good=join_manifests(
            _PROTECTED, quotas_manifest((_DEFAULT_USER, _ONE), ("{user: replicator}", "{producer_byte_rate: 1GiB}"))
        ),
    ),
    "first-default": Example(
        bad=quota_manifest(_ONE, _DEFAULT_USER),
        good=quota_manifest(_ONE, "{user: orders}"),
        live=("user=payments producer_byte_rate=1048576",),
    ),
    "empty-client-id-escapes": Example(
        bad=quota_manifest(_ONE, "{user: orders, client-id: {default: true}}"), good=quota_manifest(_ONE, "{user: orders}")
    ),
    "ip-two-spellings": Example(
        bad=quotas_manifest(
            ("{ip: 10.0.0.7}", "{connection_creation_rate: 10}"), ('{ip: "::ffff:10.0.0.7"}', "{connection_creation_rate: 20}")
        ),
        good=quota_manifest("{connection_creation_rate: 10}", "{ip: 10.0.0.7}"),
    ),
    "percentage-no-limit": Example(
        bad=quota_manifest("{request_percentage: 5000}"), good=quota_manifest("{request_percentage: 200}")
    ),
    "percentage-small": Example(bad=quota_manifest("{request_percentage: 2}"), good=quota_manifest("{request_percentage: 25}")),
    "byte-rate-small": Example(
        bad=quota_manifest("{producer_byte_rate: 1024}"), good=quota_manifest("{producer_byte_rate: 1024KiB}")
    ),
    "byte-rate-overflow": Example(
        bad=quota_manifest("{producer_byte_rate: 1B}"), good=quota_manifest("{producer_byte_rate: 1KiB}")
    ),
    "same-as-fallback": Example(
        bad=quotas_manifest((_DEFAULT_USER, _ONE), ("{user: orders}", _ONE)),
        good=quotas_manifest((_DEFAULT_USER, _ONE), ("{user: orders}", _FIVE)),
    ),
    "streams-thread-client-id": Example(
        bad=quota_manifest(_ONE, "{client-id: orders-StreamThread-1-producer}"), good=quota_manifest(_ONE, "{user: orders}")
    ),
    "reduction-throttles": Example(
        bad=quota_manifest(_ONE, "{user: orders}"),
        good=quota_manifest("{producer_byte_rate: 50MiB}", "{user: orders}"),
        live=("user=orders producer_byte_rate=104857600",),
    ),
    "expired-value": Example(
        bad=quota_manifest("{producer_byte_rate: {value: 2MiB, until: 2020-01-01, then: 1MiB}}", "{user: orders}"),
        good=quota_manifest("{producer_byte_rate: {value: 2MiB, until: 2999-01-01, then: 1MiB}}", "{user: orders}"),
    ),
    "live-value-changes-meaning": Example(
        bad=quota_manifest(_ONE, "{user: orders}"),
        good=quotas_manifest(("{user: orders}", _ONE), ("{user: batch}", _ONE)),
        live=("user=batch producer_byte_rate=0",),
    ),
    "capacity-overcommitted": Example(
        bad=join_manifests(
            cluster_manifest("capacity: {producer_byte_rate: 8MiB}"), quotas_manifest(("{user: [orders, refunds]}", _FIVE))
        ),
        good=join_manifests(
            cluster_manifest("capacity: {producer_byte_rate: 10MiB}"), quotas_manifest(("{user: [orders, refunds]}", _FIVE))
        ),
    ),
    "strimzi-owns-user": Example(
        bad=join_manifests(cluster_manifest("strimzi: {}"), quota_manifest(_ONE, "{user: orders}")),
        good=join_manifests(cluster_manifest("strimzi: {}"), quota_manifest(_ONE, "{user: orders, client-id: app}")),
    ),
    "strimzi-owns-default": Example(
        bad=join_manifests(cluster_manifest("strimzi: {}"), quota_manifest(_ONE, "{user: {default: true}}")),
        good=join_manifests(cluster_manifest("strimzi: {}"), quota_manifest(_ONE, "{user: {default: true}, client-id: app}")),
    ),
    "migrated-name": Example(
        bad=quota_manifest(_ONE, "{user: orders@example}"),
        good=join_manifests(cluster_manifest(prune="confirm"), quota_manifest(_ONE, "{user: orders@example}")),
        live=("user=orders%40example producer_byte_rate=1048576",),
    ),
}
"""By rule id."""
