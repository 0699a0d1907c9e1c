"""Reads connections and limits of writes from a trusted reference, and quotas from the work tree.

A pull request may come from anyone. With ``--trusted-ref`` its changes to connection, scope, prune, guards, protected entities,
acceptances, owners, limits and lint settings are read, checked and reported, and count only after merge.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from reconciler.errors import FileAccessError, GitError, ManifestError, UnknownCommitError, UntrustedError
from reconciler.model import (
    ClusterSpec,
    DeclaredBrokers,
    DesiredState,
    Finding,
    Message,
    SafetyRules,
    Severity,
    compose,
    display_name,
    flag_part,
    name_part,
)
from reconciler.text import shown
from reconciler.workflows.git_manifests import ManifestsAt, manifests_at, without_spans
from reconciler.workflows.git_repository import Git, repository_around
from reconciler.workflows.load import LoadedManifests, References, desired_for

_WORDS: Final = {
    "cluster_id": "clusterId", "settings": "brokerSettings", "callback": "quotaCallback", "cluster_paths": "clusterPaths",
}  # fmt: skip
"""Fields by the names that the manifests have for them, where those differ."""
_NOT_COMPARED: Final = frozenset({"span", "places", "name", "file", "exclude"})
"""Positions do not count as differences. The files to read (``exclude``) are the work tree's own, as their content is."""


TrustedTree: TypeAlias = ManifestsAt
"""The manifests of a trusted reference, and the work tree that they rule."""


def not_yet(loaded: LoadedManifests, name: str | None) -> Iterator[Message]:
    """One sentence for everything about a cluster that differs from the trusted reference and counts only after merge."""
    if loaded.trust is None:
        return
    ref, then = loaded.trust.ref, loaded.trust.loaded
    yield from _differing(compose("the Repository manifest"), loaded.proposed_repository, then.proposed_repository, ref)
    yield from _differing(compose("the findings baseline"), loaded.proposed_baseline, then.proposed_baseline, ref)
    if name is not None:
        who = compose("the Cluster manifest {name}", name=name_part(display_name(name)))
        yield from _differing(who, loaded.proposed.get(name), then.proposed.get(name), ref)


def _differing(what: Message, proposed: object, trusted: object, ref: str) -> Iterator[Message]:
    at = name_part(ref)
    if proposed is None or trusted is None:
        if proposed is not None:
            yield compose("{ref} does not have {what} yet. Its settings count after merge.", ref=at, what=what)
        elif trusted is not None:
            yield compose("This change removes {what}. The one in {ref} applies until the merge.", ref=at, what=what)
        return
    now, then = _settings(proposed), _settings(trusted)
    for setting, value in then.items():
        if now[setting] != value:
            name = flag_part(_WORDS.get(setting, setting))
            yield compose("{field} of {what} differs from {ref}. The change counts after merge.", field=name, what=what, ref=at)


def _settings(document: Any) -> dict[str, object]:
    """Return what a document states, by field; of values that are parts of a Cluster manifest each field by itself."""
    settings: dict[str, object] = {}
    for field in dataclasses.fields(document):
        value = getattr(document, field.name)
        if isinstance(value, SafetyRules | DeclaredBrokers):
            settings |= _settings(value)
        elif field.compare and field.name not in _NOT_COMPARED:
            settings[field.name] = without_spans(value)
    return settings


def not_yet_findings(loaded: LoadedManifests, name: str | None) -> Iterator[Finding]:
    """The same as findings, at the document that is proposed (or at none, when it is removed)."""
    proposed = loaded.proposed.get(name or "")
    place = proposed.span if proposed is not None else None
    for message in not_yet(loaded, name):
        yield Finding(id="counts-after-merge", severity=Severity.INFO, message=message, span=place)


_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Located:
    """A file of a work tree: ``place`` as git sees it, ``physical`` without any link. ``git`` is ``None`` outside of all."""

    git: Git | None
    place: str
    physical: str

    @property
    def linked(self) -> bool:
        """True when a link is on the way, so that git is asked about another file than would be opened."""
        assert self.git is not None
        return self.physical != os.path.join(os.path.realpath(self.git.top), *filter(None, self.place.split("/")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedFiles:
    """The commit of a trusted reference, and all work trees of its repository: any of them may have the pull request's files."""

    trees: tuple[Git, ...]
    ref: str
    commit: str

    def read(self, path: str) -> tuple[bytes, str]:
        """A file as the reference has it, or one that no pull request can have brought, as it is; and its name in messages.

        Raises ``UntrustedError`` for a file that only the work tree's commit has, and for one behind a link of the work tree, and
        ``FileAccessError`` when it cannot be read.
        """
        located = self._locate(path)
        content = self._content(located)
        if content is not None:
            return content, f"{self.ref}:{located.place}"
        return _read(located.physical, path), path

    def content(self, path: str) -> bytes | None:
        """Return what the reference has for a file of the work tree, ``None`` for one that no pull request can have brought.

        That is one outside of the repository, or one that git does not track. Raises ``UntrustedError`` as ``read``.
        """
        return self._content(self._locate(path))

    def require_same(self, path: str) -> None:
        """Raise ``UntrustedError`` unless a file that others open is what the reference has, or not the work tree's at all."""
        located = self._locate(path)
        trusted = self._content(located)
        if trusted is None:
            return
        self._require_no_link(located)
        if _lines(_read(located.physical, path, most=len(trusted) + trusted.count(b"\n") + 2)) != _lines(trusted):
            msg = f"{shown(located.place)} differs from {self.ref}. A change to it counts only after merge"
            raise UntrustedError(msg)

    def require_same_below(self, path: str) -> None:
        """The same for every file at or below a path; one that the reference has must not be missing here."""
        located = self._locate(path)
        if located.git is None:
            return
        self._require_no_link(located)
        present = located.git.tracked(located.place)
        if not present and located.git.tracks(located.place):
            raise self._not_there(located.place)
        known = {entry.path for entry in located.git.entries(self.commit, [located.place]) if not entry.link}
        for place in present:
            if place not in known:
                raise self._not_there(place)
            self.require_same(os.path.join(located.git.top, place))
        for place in sorted(known.difference(present)):
            msg = f"{shown(place)} is missing here, and {self.ref} has it. The removal counts only after merge"
            raise UntrustedError(msg)

    def _locate(self, path: str) -> _Located:
        """The file that a path means. Its steps back are taken as they are written, and must lead there also behind links."""
        written, physical = os.path.abspath(path), os.path.realpath(path)
        if os.path.realpath(written) != physical:
            msg = f"{shown(path)} goes back with '..' behind a symbolic link, which may lead anywhere. Write it without '..'"
            raise UntrustedError(msg)
        for spelling in (written, physical):
            places = [(git, place) for git in self.trees if (place := git.relative(spelling)) is not None]
            if places:
                git, place = min(places, key=lambda place: len(place[1]))
                return _Located(git=git, place=place, physical=physical)
        return _Located(git=None, place="", physical=physical)

    def _content(self, located: _Located) -> bytes | None:
        if located.git is None:
            return None
        content = located.git.file(self.commit, located.place)
        if content is None:
            self._require_no_link(located)
            if located.git.tracks(located.place):
                raise self._not_there(located.place)
        return content

    def _require_no_link(self, located: _Located) -> None:
        if located.linked:
            msg = (
                f"{shown(located.place)} is reached through a symbolic link of the work tree, which {self.ref} does not vouch for"
            )
            raise UntrustedError(msg)

    def _not_there(self, place: str) -> UntrustedError:
        return UntrustedError(
            f"{shown(place)} is not in {self.ref}: a file that decides how to connect or what is compared counts only after "
            "merge. Merge it first, or pass a file that git does not track"
        )


def read_trusted_files(ref: str, path: str) -> TrustedFiles:
    """The trusted files of the repository around a path.

    Raises ``GitError`` without one, ``UsageError`` for a path outside of it.
    """
    git = repository_around(path)
    return files_at(git, ref=ref, commit=git.commit(ref))


def files_at(git: Git, *, ref: str, commit: str) -> TrustedFiles:
    """The same for a commit that is known."""
    trees = tuple(replace(git, top=top) for top in git.work_trees())
    return TrustedFiles(trees=trees, ref=ref, commit=commit)


def _read(physical: str, path: str, *, most: int = -1) -> bytes:
    """The file, of which no step is a link; were its last one a link by now, it would not be opened."""
    try:
        with os.fdopen(os.open(physical, os.O_RDONLY | _NO_FOLLOW), "rb") as file:
            return file.read(most)
    except OSError as error:
        msg = f"{shown(path)} cannot be read: {error.strerror}"
        raise FileAccessError(msg) from error


def _lines(content: bytes) -> bytes:
    """Git may have written other line ends into the work tree."""
    return content.replace(b"\r\n", b"\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was declared for one cluster at a reference."""

    at: ManifestsAt
    desired: DesiredState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReferences:
    """The references, read. The trusted one is the base too, unless another is given."""

    trusted: TrustedTree | None = None
    base: ManifestsAt | None = None
    missing: str | None = None
    """Why nothing is known of the base. Everything is new then."""

    def for_cluster(self, spec: ClusterSpec) -> tuple[ReadReferences, Before | None]:
        """Return what the base declares for a cluster, and the references, without the base where that contradicts itself."""
        if self.base is None:
            return self, None
        try:
            return self, Before(at=self.base, desired=declared_at(self.base, spec.name))
        except ManifestError as error:
            return replace(self, base=None, missing=str(error)), None

    def findings(self) -> tuple[Finding, ...]:
        """Return a warning when nothing is known of the base."""
        if self.missing is None:
            return ()
        message = compose("The base cannot be compared, so every finding and change counts as new: {why}.", why=self.missing)
        return (Finding(id="base-not-found", severity=Severity.WARNING, message=message),)

    def notes(self, loaded: LoadedManifests, spec: ClusterSpec) -> tuple[str, ...]:
        """Return sentences on what counts only after merge, and on commits of the base that are not here."""
        behind = () if self.base is None else behind_base(self.base)
        return (*(not_yet(loaded, spec.name) if loaded.trust is not None else ()), *behind)


def read_references(references: References, paths: Sequence[str]) -> ReadReferences:
    """Read the manifests at both. Nothing is known of a base that has errors or is not there.

    Raises ``GitError``, ``UntrustedError``, ``UsageError``, and ``ManifestError`` for errors at the trusted one.
    """
    trusted = None if references.trusted is None else manifests_at(references.trusted, paths, same_links=True)
    if references.base is None or references.base == references.trusted:
        return ReadReferences(trusted=trusted, base=trusted)
    try:
        return ReadReferences(trusted=trusted, base=manifests_at(references.base, paths))
    except (UnknownCommitError, ManifestError) as error:
        return ReadReferences(trusted=trusted, missing=str(error))


def declared_at(at: ManifestsAt, cluster: str | None) -> DesiredState:
    """Return what was declared for a cluster at a reference, and an empty state for one that was not there yet.

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
