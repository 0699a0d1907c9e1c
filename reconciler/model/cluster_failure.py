"""One cluster of several that could not be looked at, while the others were."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.finding import Finding
from reconciler.model.state import ClusterIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFailure:
    """Why there is no result for a cluster. ``skipped``: there cannot be one yet, which is no failure of the run.

    ``failure_reason`` is the word of the error tree; ``findings`` are those that stopped it, when it was the manifests.
    """

    cluster: ClusterIdentity
    failure_reason: str
    message: str
    skipped: bool = False
    findings: tuple[Finding, ...] = ()
