"""The manifests on disk: whether anything about them changed, and whether they are still there.

A change is seen by the identity, size and times of the files that the paths lead to, so the exchange of a link (as Kubernetes
does with a ConfigMap, and git-sync with a checkout) is one too.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from reconciler.errors import ManifestError, ReconcilerError, UsageError, VanishedError
from reconciler.manifest import Discovery, discover
from reconciler.model import ClusterFailure, display_name
from reconciler.ports import Clock
from reconciler.text import shown
from reconciler.workflows import Intent, find_repository_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What is on disk now. ``counts``: for each PATH how many YAML files it leads to, ``None`` where there is no such path."""

    root: str | None
    counts: tuple[int | None, ...]
    digest: str


class Manifests(Protocol):
    """What a service that follows one cluster needs of the manifests."""

    def fingerprint(self) -> Fingerprint:
        """The state of the files now."""
        ...

    def load(self, now: Fingerprint) -> Intent:
        """Load what the manifests want of the cluster. Raises ``VanishedError``, and as ``load_intent`` does."""
        ...


T = TypeVar("T")


class Watch(Generic[T]):
    """Observes the paths and loads their manifests, while the paths resolve to the folders of the last successful load."""

    def __init__(self, paths: Sequence[str], load: Callable[[], T]) -> None:
        self._paths = tuple(paths)
        self._load = load
        self._good: Fingerprint | None = None

    def fingerprint(self) -> Fingerprint:
        """The state of the files now; their content is not read."""
        try:
            root = find_repository_root(self._paths)
        except UsageError:
            # Paths of different roots: loading says so, and to whom.
            root = None
        discovered = discover(self._paths, root=root)
        hashed = hashlib.sha256()
        for file in discovered.files:
            hashed.update(f"{_status_of(file.path)} {file.path}\0".encode("utf-8", "surrogateescape"))
        counts = tuple(_count(path, discovered) for path in self._paths)
        return Fingerprint(root=root, counts=counts, digest=hashed.hexdigest())

    def load(self, now: Fingerprint) -> T:
        """Load the manifests. Raises ``VanishedError`` if a path or the root is not what it was, and as loading does."""
        for path, count in zip(self._paths, now.counts, strict=True):
            if count is None:
                raise VanishedError(f"{shown(path)} is missing. Nothing is applied until it is back")
        if self._good is not None:
            self._require_same(self._good, now)
        intent = self._load()
        self._good = now
        return intent

    def _require_same(self, good: Fingerprint, now: Fingerprint) -> None:
        for path, before, count in zip(self._paths, good.counts, now.counts, strict=True):
            if before and not count:
                msg = f"{shown(path)} had {before} YAML files and has none now. Nothing is applied until some are back"
                raise VanishedError(msg)
        if good.root != now.root:
            was, is_now = (shown(root) if root else "none" for root in (good.root, now.root))
            msg = f"the folder of the Repository file was {was} and is {is_now}. Nothing is applied. Start again if that is meant"
            raise VanishedError(msg)


def _status_of(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _count(path: str, discovery: Discovery) -> int | None:
    if not os.path.exists(path):
        return None
    absolute = os.path.abspath(path)
    places = (os.path.abspath(file.path) for file in discovery.files)
    return sum(1 for place in places if place == absolute or place.startswith(absolute.rstrip(os.sep) + os.sep))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One reading of the manifests. ``at_s``: by the monotonic clock; ``error``: what ended it."""

    files: Fingerprint
    at_s: float
    intents: Mapping[str, Intent | ClusterFailure]
    error: ReconcilerError | None = None
    next_expiry: datetime.datetime | None = None
    """When the first value of a cluster expires, after which the intents are another."""


class SharedManifests:
    """What the manifests want of each cluster. One thread looks at the files, those of the clusters ask.

    A reading serves all clusters until the files change, for at most ``fresh_s`` seconds, or until a value expires: a trusted
    reference may move alone.
    """

    def __init__(
        self, paths: Sequence[str], load: Callable[[], Sequence[Intent | ClusterFailure]], *, fresh_s: float, clock: Clock
    ) -> None:
        self._watch = Watch(paths, load)
        self._fresh_s = fresh_s
        self._clock = clock
        self._lock = threading.Lock()
        self._published = self._seen = self._watch.fingerprint()
        self._reading: _Reading | None = None

    def look(self) -> bool:
        """Look at the files; true when they are as at the look before. Only then do the clusters see them."""
        seen = self._watch.fingerprint()
        settled, self._seen = seen == self._seen, seen
        if settled:
            self._published = seen
        return settled

    @property
    def published(self) -> Fingerprint:
        """The files as they were when two looks found the same."""
        return self._published

    def forget(self) -> None:
        """Read everything again when it is asked for next."""
        with self._lock:
            self._reading = None

    def intents(self) -> Mapping[str, Intent | ClusterFailure]:
        """Return the intents by cluster name. Raises ``ReconcilerError``, with findings only for the first caller."""
        with self._lock:
            now = self._clock.monotonic()
            reading = self._reading
            if reading is None or reading.files != self._published or self._is_old(reading, now):
                self._reading = reading = self._read(now)
                if reading.error is not None:
                    raise reading.error
            if reading.error is not None:
                raise _brief(reading.error)
            return reading.intents

    def _is_old(self, reading: _Reading, now: float) -> bool:
        expired = reading.next_expiry is not None and self._clock.now() >= reading.next_expiry
        return expired or now - reading.at_s >= self._fresh_s

    def _read(self, now: float) -> _Reading:
        files = self._published
        try:
            loaded = self._watch.load(files)
        except ReconcilerError as error:
            return _Reading(files=files, at_s=now, intents={}, error=error)
        # A comparison of fingerprints after this shows files that changed while they were read.
        self._published = self._watch.fingerprint()
        expiries = (each.desired.next_expiry() for each in loaded if isinstance(each, Intent))
        return _Reading(
            files=files,
            at_s=now,
            intents={_name(each): each for each in loaded},
            next_expiry=min((at for at in expiries if at is not None), default=None),
        )


def _name(intent: Intent | ClusterFailure) -> str:
    return (intent.cluster.name if isinstance(intent, ClusterFailure) else intent.spec.name) or ""


def _brief(error: ReconcilerError) -> ReconcilerError:
    return ManifestError(error.brief) if isinstance(error, ManifestError) else error


class ManifestsOfCluster:
    """The part of shared manifests that is about one cluster."""

    def __init__(self, shared: SharedManifests, cluster: str) -> None:
        self._shared = shared
        self._cluster = cluster

    def fingerprint(self) -> Fingerprint:
        """The state of the files that the service saw last."""
        return self._shared.published

    def load(self, now: Fingerprint) -> Intent:
        """Return what the manifests want of the cluster. Raises ``VanishedError`` if none declares it, ``ManifestError``."""
        del now
        intent = self._shared.intents().get(self._cluster)
        if intent is None:
            raise VanishedError(f"no manifest declares cluster {display_name(self._cluster)} any more. Nothing is applied")
        if isinstance(intent, ClusterFailure):
            raise ManifestError(intent.message, findings=intent.findings)
        return intent
