"""The manifests on disk: whether anything about them changed, and whether they are still there.

A change is seen by the identity, size and times of the files that the paths lead to, so the exchange of a link (as Kubernetes
does with a ConfigMap, and git-sync with a checkout) is one too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.errors import UsageError, VanishedError
from reconciler.manifest import Discovery, discover
from reconciler.model import ClusterFailure
from reconciler.text import shown
from reconciler.workflows import Intent, find_repository_root

Reading: TypeAlias = Sequence[Intent | ClusterFailure]
"""What the manifests want of each cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What is on disk now. ``counts``: for each PATH how many YAML files it leads to, ``None`` for a path that does not exist."""

    root: str | None
    counts: tuple[int | None, ...]
    digest: str


class Watch:
    """Observes the paths and loads their manifests, while the paths resolve to the folders of the last successful load."""

    def __init__(self, paths: Sequence[str], load: Callable[[], Reading]) -> None:
        self._paths = tuple(paths)
        self._load = load
        self._good: Fingerprint | None = None

    def fingerprint(self) -> Fingerprint:
        """Return the state of the files now. Their content is not read."""
        try:
            root = find_repository_root(self._paths)
        except UsageError:
            # Paths of different roots: loading refuses them, and names both.
            root = None
        discovered = discover(self._paths, root=root)
        hashed = hashlib.sha256()
        for file in discovered.files:
            hashed.update(f"{_status_of(file.path)} {file.path}\0".encode("utf-8", "surrogateescape"))
        counts = tuple(_count(path, discovered) for path in self._paths)
        return Fingerprint(root=root, counts=counts, digest=hashed.hexdigest())

    def load(self, now: Fingerprint) -> Reading:
        """Load the manifests. Raises ``VanishedError`` if a path or the root is not what it was, and as loading does."""
        good = self._good or now
        for path, before, count in zip(self._paths, good.counts, now.counts, strict=True):
            if count is None or (before and not count):
                raise VanishedError(f"{shown(path)} is missing, or has no YAML file. Nothing is applied until one is back")
        if good.root != now.root:
            was, is_now = (shown(root) if root else "none" for root in (good.root, now.root))
            msg = f"the folder of the Repository file was {was} and is {is_now}. Nothing is applied. Start again if that is meant"
            raise VanishedError(msg)
        reading = self._load()
        self._good = now
        return reading


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
