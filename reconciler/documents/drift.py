"""Drift as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.documents.codec import Keyed, row
from reconciler.documents.document import Document
from reconciler.documents.values import VALUES
from reconciler.model import Count, Drift, EntityDrift, KeyDrift


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftCounts:
    """Number of entities by class."""

    in_sync: Count
    """Live as declared."""
    unapplied: Count
    """Live as at the baseline, declared otherwise now: merged, not applied."""
    changed: Count
    """Live with other values than at the baseline: changed by hand."""
    missing: Count
    """In the baseline and not live: removed by hand."""
    differs: Count
    """Not as declared, and no baseline shows why."""
    added: Count
    """In the scope and declared nowhere. The next apply removes it (prune: confirm or always), or it overrides a declared
    limit (prune: never).
    """
    unmanaged: Count
    """Live and declared nowhere, and neither of what is added. Not a difference."""


def counts_of_classes(drift: Drift) -> DriftCounts:
    """Number of entities by class."""
    return DriftCounts(**{each.value.replace("-", "_"): n for each, n in drift.counts.items()})


DRIFT: Final = Document(
    cls=Drift,
    name="drift",
    title="kafka-quotas drift",
    codec=VALUES.extended(
        {
            Drift: row(
                "cluster source observed complete prune baseline differs summary entities notes findings",
                summary=counts_of_classes,
            ),
            EntityDrift: row("entity class=drift declared in_scope keys source", keys=Keyed("key")),
            KeyDrift: row("desired baseline live source overrides declared=unit? brokers_before? expiry?"),
        }
    ),
)
