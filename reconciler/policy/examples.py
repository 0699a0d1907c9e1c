"""An example for every guard: a change that trips it, and one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model import Example, entries, entry, stream
from reconciler.model.explanation import cluster

_TWO: Final = "{producer_byte_rate: 2MiB}"
_ORDERS: Final = "user=orders producer_byte_rate=1048576"
_OTHERS: Final = tuple(f"user=batch-{n} producer_byte_rate=1048576" for n in range(1, 13))


def _batch(quotas: str, numbers: range = range(1, 13)) -> str:
    return entries(*((f"{{user: batch-{n}}}", quotas) for n in numbers))


EXAMPLES: Final[Mapping[str, Example]] = {
    "default-entity": Example(
        bad=entry(_TWO, "{user: {default: true}}"),
        good=entry(_TWO, "{user: orders}"),
        live=("user=<default> producer_byte_rate=1048576",),
    ),
    "empty-desired-state": Example(
        bad=stream(cluster(prune="always"), "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec: {quotas: []}\n"),
        good=stream(cluster(prune="always"), entry(_TWO)),
        live=(_ORDERS,),
    ),
    "freeze-window": Example(
        bad=stream(cluster("freeze: [{from: 2020-01-01T00:00:00Z, reason: end of the year}]"), entry(_TWO)),
        good=stream(cluster("freeze: [{to: 2020-01-02T08:00:00Z, reason: end of the year}]"), entry(_TWO)),
        live=(_ORDERS,),
    ),
    "large-reduction": Example(
        bad=entry("{producer_byte_rate: 20KiB}"), good=entry("{producer_byte_rate: 900KiB}"), live=(_ORDERS,)
    ),
    "protected-entity": Example(
        bad=stream(cluster("protected: [{user: orders}]"), entry(_TWO)),
        good=stream(cluster("protected: [{user: replicator}]"), entry(_TWO)),
        live=(_ORDERS,),
    ),
    "prune": Example(
        bad=stream(cluster(prune="confirm"), entry(_TWO, "{user: payments}")),
        good=stream(cluster(prune="confirm"), entries(("{user: payments}", _TWO), ("{user: orders}", _TWO))),
        live=(_ORDERS,),
    ),
    "too-many-changes": Example(bad=_batch(_TWO), good=_batch(_TWO, range(1, 5)), live=_OTHERS),
    "too-many-removals": Example(bad=_batch("{}"), good=_batch(_TWO, range(1, 5)), live=_OTHERS),
    "unknown-current-keys": Example(
        bad=stream(cluster("guards: {unknown-current-keys: {count: 0}}"), entry(_TWO)),
        good=stream(cluster("guards: {unknown-current-keys: {count: 5}}"), entry(_TWO)),
        live=("user=orders producer_byte_rate=1048576 fetch_record_rate=5",),
    ),
    "scope-overlap": Example(
        bad=stream(
            cluster("clusterId: c1"),
            cluster("clusterId: c1").replace("name: prod", "name: prod-copy"),
            entry(_TWO),
        ),
        good=stream(
            cluster("clusterId: c1"),
            cluster("clusterId: c1", "scope: {include: [{user: {prefix: batch-}}]}").replace("name: prod", "name: prod-copy"),
            entry(_TWO).replace("spec:\n", "spec:\n  clusters: [prod]\n"),
        ),
        live=(_ORDERS,),
    ),
}
"""By guard id."""
