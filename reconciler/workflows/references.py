"""Git references that a plan is seen against: the trusted one, and the base that it is going to be merged into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import GitError
from reconciler.model import ClusterSpec, DesiredState, Span
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at
from reconciler.workflows.load import LoadedManifests, Trust, desired_for
from reconciler.workflows.trusted import TrustedTree, not_yet, trusted_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The references as the user gave them."""

    trusted: str | None = None
    base: str | None = None


NO_REFERENCES: Final = References()


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was declared for one cluster at a reference."""

    ref: str
    commit: str
    desired: DesiredState
    place: Callable[[Span], Span]
    """A place of ``desired`` as git spells it: ``ref:path``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReferences:
    """The references, read. The trusted one is the base too, unless another is given."""

    trusted: TrustedTree | None = None
    base: ManifestsAt | None = None

    @property
    def trust(self) -> Trust | None:
        """For loading the work tree."""
        return None if self.trusted is None else self.trusted.trust()

    def before(self, spec: ClusterSpec) -> Before | None:
        """The quotas that the base declares for a cluster.

        Raises ``ManifestError`` when the manifests contradict themselves there.
        """
        return None if self.base is None else _before(self.base, spec)

    def notes(self, loaded: LoadedManifests, spec: ClusterSpec) -> tuple[str, ...]:
        """What counts only after merge, and what of the base is not here."""
        behind = () if self.base is None else behind_base(self.base)
        return (*(not_yet(loaded, spec.name) if loaded.trust is not None else ()), *behind)


def _before(base: ManifestsAt, spec: ClusterSpec) -> Before:
    return Before(ref=base.ref, commit=base.commit, desired=declared_at(base, spec.name), place=base.span)


def read_references(references: References, paths: Sequence[str]) -> ReadReferences:
    """Read the manifests at both. Raises ``GitError``, ``UntrustedError``, ``UsageError``, ``ManifestError`` (errors there)."""
    trusted = trusted_tree(references.trusted, paths)
    if references.base is None or references.base == references.trusted:
        return ReadReferences(trusted=trusted, base=trusted.at if trusted else None)
    return ReadReferences(trusted=trusted, base=manifests_at(references.base, paths))


def declared_at(at: ManifestsAt, cluster: str | None) -> DesiredState:
    """What was declared for a cluster at a reference; nothing for a cluster that was not there yet.

    Raises ``ManifestError`` when the manifests contradict themselves there.
    """
    known = at.loaded.clusters
    if cluster not in known and known:
        return DesiredState()
    _, state, findings = desired_for(at.loaded, cluster if cluster in known else None)
    at.require_good(findings)
    return state


def behind_base(base: ManifestsAt) -> Iterator[str]:
    """A sentence when the checked-out commit lacks commits of the base: the plan would silently undo what they did."""
    try:
        missing = base.git.missing_commits(base=base.commit)
    except GitError:
        # There is no commit checked out yet, so there is nothing to be behind.
        return
    if missing == 0:
        return
    if base.git.shallow():
        yield f"this clone is shallow, so nothing shows whether the commit contains {base.ref}. Fetch its whole history"
        return
    commits = "1 commit" if missing == 1 else f"{missing} commits"
    yield (
        f"this commit is behind {base.ref}: {commits} there are not in it, and what they declare is missing from this plan. "
        "Merge or rebase, then plan again"
    )
