"""The manifests of a service for many clusters: looked at and read once for all of them."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.errors import ManifestError, ReconcilerError, VanishedError
from reconciler.features.service.watch import Fingerprint, Watch
from reconciler.model import ClusterFailure, display_name
from reconciler.ports import Clock
from reconciler.workflows import Intent


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
        """By the clusters' names. Raises ``ReconcilerError``, with findings only for the first who asks."""
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
        """What the manifests want of the cluster. Raises ``VanishedError`` when none declares it any more, ``ManifestError``."""
        del now
        intent = self._shared.intents().get(self._cluster)
        if intent is None:
            raise VanishedError(f"no manifest declares cluster {display_name(self._cluster)} any more. Nothing is applied")
        if isinstance(intent, ClusterFailure):
            raise ManifestError(intent.message, findings=intent.findings)
        return intent
