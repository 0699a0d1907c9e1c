"""Where the states to resolve against come from: the words of the command line, each read at most once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.model import ClusterSpec, Finding, Severity
from reconciler.resolution import QuotaView
from reconciler.text import did_you_mean, shown
from reconciler.workflows.connect import Access, quota_reader, read_state, snapshot_reader
from reconciler.workflows.load import LoadedManifests, chosen_cluster, load_manifests, stop_on
from reconciler.workflows.plan import Intent, intent_of
from reconciler.workflows.references import ReadReferences, References, read_references
from reconciler.workflows.resolve_views import current_view, manifests_view, planned_view
from reconciler.workflows.trusted import TrustedTree
from reconciler.workflows.trusted_files import read_trusted_files

CURRENT: Final = "current"
CLUSTER: Final = "cluster"
MANIFESTS: Final = "manifests"
PLANNED: Final = "planned"
WORDS: Final = (CURRENT, CLUSTER, MANIFESTS, PLANNED)
"""The names of states; anything else is the path of a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The manifests, if any, and how to reach the cluster. Without paths and a cluster name no manifest is read unless needed."""

    paths: tuple[str, ...] = ()
    cluster: str | None = None
    access: Access = field(default_factory=Access)
    trusted_ref: str | None = None
    fail_on: Severity = Severity.ERROR


class Sources:
    """States by their names. Everything that several of them need is read once."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self.findings: tuple[Finding, ...] = ()
        """Of the manifests that were read, none of which stopped anything."""

    def view(self, name: str) -> QuotaView:
        """The state of that name, or of a snapshot.

        Raises ``ManifestError``, ``UsageError``, ``UntrustedError`` and ``GitError`` as loading manifests does,
        ``FileAccessError`` for a snapshot, ``WrongClusterError`` and ``BackendError`` from the cluster.
        """
        if name == CURRENT:
            return self._current
        if name == CLUSTER:
            return self._current if self._where.access.current is None else self._cluster
        if name == MANIFESTS:
            return manifests_view(self._intent(everything=True))
        if name == PLANNED:
            return planned_view(self._intent(everything=False), self._current)
        ref, paths = self._where.trusted_ref, self._where.paths or (".",)
        reader = snapshot_reader(name, trusted=read_trusted_files(ref, paths[0]) if ref is not None else None)
        return current_view(reader.current_state(), source=reader)

    @cached_property
    def _current(self) -> QuotaView:
        return self._read(self._where.access)

    @cached_property
    def _cluster(self) -> QuotaView:
        return self._read(replace(self._where.access, current=None))

    def _read(self, access: Access) -> QuotaView:
        spec, trusted = self._spec
        with quota_reader(spec, access, trusted=trusted) as reader:
            return current_view(read_state(spec, reader), source=reader, name=spec.name, spec=spec)

    @property
    def _spec(self) -> tuple[ClusterSpec, TrustedTree | None]:
        """The cluster of the manifests when a path, a name or a reference is given, or a state needed them; else the stand-in."""
        where = self._where
        if not where.paths and where.cluster is None and where.trusted_ref is None and "_loaded" not in self.__dict__:
            return ClusterSpec(), None
        seen, loaded = self._loaded
        return chosen_cluster(loaded, where.cluster), seen.trusted

    @cached_property
    def _loaded(self) -> tuple[ReadReferences, LoadedManifests]:
        paths = self._where.paths or (".",)
        seen = read_references(References(trusted=self._where.trusted_ref), paths)
        loaded = load_manifests(paths, trust=seen.trust)
        stop_on(loaded.findings, self._where.fail_on)
        return seen, loaded

    def _intent(self, *, everything: bool) -> Intent:
        """What the manifests want; ``everything`` of the root, whatever the paths are, because all of it decides what holds."""
        seen, loaded = self._loaded
        if everything and loaded.root is not None:
            loaded = replace(loaded, selected=None, complete=True)
        where = self._where
        intent = intent_of(loaded, seen, where.paths or (".",), cluster=where.cluster, fail_on=where.fail_on)
        self.findings = intent.findings
        return intent


def check_names(names: Sequence[str]) -> None:
    """Raise ``UsageError`` for a state whose name is neither one of ``WORDS`` nor looks like the path of a file that is there."""
    for name in names:
        if name not in WORDS and not Path(name).exists():
            msg = f"there is no state {shown(name)}: say {', '.join(WORDS)}, or the path of a snapshot file{_near(name)}"
            raise UsageError(msg)


def _near(name: str) -> str:
    near = did_you_mean(name, WORDS)
    return near if near.startswith("; did") else ""
