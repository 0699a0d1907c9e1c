"""One cluster of several: whether its manifests changed since a commit, or why there is no result for it."""

from __future__ import annotations

import enum
import hashlib
import re
from dataclasses import dataclass
from typing import Final

from reconciler.model.finding import Finding
from reconciler.model.state import ClusterIdentity

_PLAIN: Final = re.compile(r"(?!.*(?:\.\.|\.lock$|\.$))[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class ClusterChange(enum.StrEnum):
    """What became of a cluster's part of the manifests."""

    SAME = "same"
    CHANGED = "changed"
    NEW = "new"
    """There is no such cluster at the commit, or no commit to compare with."""
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCluster:
    """One cluster. ``reasons``: ``settings``, ``quotas``, or that it is not known. ``trusted``: it may be asked."""

    name: str
    """Of the Cluster manifest."""
    change: ClusterChange
    """New: not there then, or nothing to compare with. Removed: there then, and no more."""
    since: str | None = None
    """The commit that was compared with."""
    reasons: tuple[str, ...] = ()
    """Why it counts as changed: its Cluster manifest (settings), its quotas, or errors in the manifests now (errors here) or
    at the earlier commit (errors there).
    """
    trusted: bool = True
    """The trusted reference, if one was given, has it too."""

    @property
    def slug(self) -> str:
        """The name for git references and files. See ``slug_of``."""
        return slug_of(self.name)

    @property
    def to_do(self) -> bool:
        """True when a plan for this cluster can be made, and may be another than before."""
        return self.trusted and self.change in (ClusterChange.CHANGED, ClusterChange.NEW)


def slug_of(name: str) -> str:
    """A cluster's name where only letters, digits and ``. _ -`` may be: itself if it can, else with eight digits of its hash.

    Two names never share one that a hash was needed for, short of a collision of SHA-256 in 32 bits.
    """
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:60].strip("-")
    return f"{plain or 'cluster'}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFailure:
    """Why there is no result for a cluster. ``skipped``: there cannot be one yet, which is not a failure of the run.

    ``failure_reason`` is the word of the error tree. ``findings`` are those that stopped it, when it was the manifests.
    """

    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    failure_reason: str
    """Machine-readable word for the cause of a failure, such as guard, stale-plan or unreachable. ``None`` after a success."""
    message: str
    """The error as a sentence for people."""
    skipped: bool = False
    """True for a cluster that the trusted reference does not have yet."""
    findings: tuple[Finding, ...] = ()
    """Findings about the manifests and the cluster."""
