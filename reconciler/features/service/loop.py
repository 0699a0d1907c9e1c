"""The loop: looks at the files every second, and runs a pass over each cluster when they changed or it is time.

One thread reads the manifests, for all clusters at once, and schedules. Each pass runs in a thread, so a cluster that is slow or
away does not delay the others. The manifests are read again after the interval, when a file changes, and when a value of theirs
expires; each reading leads to a pass. A pass that failed is repeated after a growing wait when that may help.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from reconciler.errors import ManifestError, ReconcilerError, UsageError
from reconciler.features.service.manifests import Fingerprint, Reading, Watch
from reconciler.features.service.observers import Observers
from reconciler.features.service.passes import Passes, PassOutcome, PassResult, ended_by
from reconciler.features.service.signals import SignalRequests
from reconciler.formats import Json
from reconciler.model import ClusterFailure
from reconciler.workflows import Intent

_LOOK_S: Final = 1.0
"""How often the files are looked at. Two looks must agree: a checkout in the middle of its update is not an intent."""
_FIRST_RETRY_S: Final = 5.0
_MOST_DOUBLINGS: Final = 32
_MOST_AT_ONCE: Final = 8
_STALE_INTERVALS: Final = 3
_NEVER_S: Final = float("inf")
_PASSING: Final = frozenset({"stale-plan", "locked"})
"""Refusals that mean that another writer is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``interval_s``: how often the manifests and clusters are read. ``silent_s``: how long a pass may take, for ``/healthz``.

    ``is_strict``: an option that cannot work for the one cluster ends the loop.
    """

    interval_s: float
    silent_s: float
    is_strict: bool = False


@dataclass(slots=True, kw_only=True)
class Following:
    """One cluster that the service follows. ``wanted``: the intent of the next pass, or how it ends without one.

    Times are those of the monotonic clock.
    """

    name: str
    passes: Passes | None = None
    wanted: Intent | PassOutcome
    due_s: float
    """When the next pass begins."""
    began_s: float | None = None
    """When the pass that runs began."""
    looked_s: float | None = None
    """When a pass last compared manifests and cluster."""
    is_gone: bool = False
    """Whether no manifest declares it any more."""
    ended: PassOutcome | None = None
    """The pass that just ended, until the loop reports it."""
    last: PassOutcome | None = None
    failures: int = 0
    """Passes without success in a row."""


def _start_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="pass", daemon=True).start()


class Loop:
    """Follows the clusters of the manifests until it is stopped, never with two passes over one cluster at once.

    ``passes_of`` makes the passes of a cluster, by its name.
    """

    def __init__(
        self,
        watch: Watch,
        passes_of: Callable[[str], Passes],
        *,
        pace: Pace,
        requests: SignalRequests,
        observers: Observers,
        start: Callable[[Callable[[], None]], None] = _start_thread,
    ) -> None:
        self._watch = watch
        self._passes_of = passes_of
        self._pace = pace
        self._requests = requests
        self._observers = observers
        self._start = start
        self._monotonic = observers.clock.monotonic
        self._clusters: dict[str, Following] = {}
        self._seen: Fingerprint | None = None
        self._read: Fingerprint | None = None
        """The files that were read last."""
        self._beat_s = self._due_s = self._monotonic()
        """When the loop last ran, and when the manifests are read next."""
        self._asked = False

    def run(self) -> tuple[PassOutcome, ...]:
        """Go on until stopped. Returns the last pass of each cluster that had one.

        Raises ``UsageError`` when the first reading, or the first pass of a strict loop, finds that the options cannot work.
        """
        while not self._requests.stop_wanted():
            self._beat_s = self._monotonic()
            self._look()
            self._collect()
            self._begin()
            self._requests.wait(_LOOK_S)
        while any(cluster.began_s is not None for cluster in self._clusters.values()):
            self._requests.wait(_LOOK_S)
            self._collect()
        return tuple(cluster.last for cluster in self._clusters.values() if cluster.last is not None)

    def alive(self) -> tuple[bool, dict[str, Json]]:
        """Return whether the loop and every pass showed a sign of life not too long ago, and the document of ``/healthz``."""
        now, clusters = self._monotonic(), self._clusters.copy()
        failing: dict[str, Json] = {
            name: {"seconds_since_begin": round(now - began, 1)}
            for name, cluster in sorted(clusters.items())
            if (began := cluster.began_s) is not None and now - began > self._pace.silent_s
        }
        is_alive = not failing and now - self._beat_s <= self._pace.silent_s
        return is_alive, {"status": "alive" if is_alive else "stuck", "clusters": len(clusters), "failing": failing}

    def ready(self) -> tuple[bool, dict[str, Json]]:
        """Return whether each cluster was read not too long ago, and there is one, and the document of ``/readyz``."""
        now, clusters = self._monotonic(), self._clusters.copy()
        oldest_s = now - _STALE_INTERVALS * self._pace.interval_s
        failing: dict[str, Json] = {
            name: {
                "last_pass": None if cluster.last is None else cluster.last.result.value,
                "seconds_since_last_look": None if cluster.looked_s is None else round(now - cluster.looked_s, 1),
            }
            for name, cluster in sorted(clusters.items())
            if cluster.looked_s is None or cluster.looked_s < oldest_s
        }
        is_ready = bool(clusters) and not failing
        return is_ready, {"status": "ready" if is_ready else "not ready", "clusters": len(clusters), "failing": failing}

    def _look(self) -> None:
        """Read the manifests when that is due and the files do not change."""
        files = self._watch.fingerprint()
        is_settled, self._seen = files == self._seen, files
        self._asked = self._requests.take_reread() or self._asked
        if not is_settled or not (self._asked or files != self._read or self._monotonic() >= self._due_s):
            return
        loaded: Reading | ReconcilerError
        try:
            loaded = self._watch.load(files)
        except ReconcilerError as error:
            if isinstance(error, UsageError) and self._read is None:
                raise
            loaded = error
        if self._watch.fingerprint() != files:
            # They changed while they were read: read them once they are settled.
            return
        self._asked, self._read = False, files
        self._due_s = self._monotonic() + self._pace.interval_s
        if isinstance(loaded, ReconcilerError):
            # Each cluster ends so, or one without a name before any is known. The first one has the findings.
            outcome = ended_by(loaded, in_manifests=True)
            for name in tuple(self._clusters) or ("",):
                self._want(name, outcome)
                outcome = replace(outcome, details=())
        else:
            self._follow(loaded)

    def _follow(self, reading: Reading) -> None:
        now, names = self._observers.clock.now(), set()
        for each in reading:
            name = (each.cluster.name if isinstance(each, ClusterFailure) else each.spec.name) or ""
            if isinstance(each, ClusterFailure) and each.skipped:
                self._observers.log.write(logging.WARNING, "skipped", each.message, cluster=name)
                continue
            names.add(name)
            if isinstance(each, ClusterFailure):
                self._want(name, ended_by(ManifestError(each.message, findings=each.findings)))
                continue
            self._want(name, each)
            expiry = each.desired.next_expiry()
            if expiry is not None:
                self._due_s = min(self._due_s, self._monotonic() + max(0.0, (expiry - now).total_seconds()))
        for name, cluster in self._clusters.items():
            cluster.is_gone = name not in names

    def _want(self, name: str, wanted: Intent | PassOutcome) -> None:
        now = self._monotonic()
        cluster = self._clusters.setdefault(name, Following(name=name, wanted=wanted, due_s=now))
        cluster.wanted, cluster.due_s = wanted, now

    def _begin(self) -> None:
        """Begin the passes that are due, those that wait longest first."""
        now = self._monotonic()
        for cluster in sorted(self._clusters.values(), key=lambda cluster: cluster.due_s):
            if cluster.began_s is not None or cluster.due_s > now:
                continue
            if isinstance(cluster.wanted, PassOutcome):
                cluster.due_s = _NEVER_S
                self._report(cluster, cluster.wanted)
            elif sum(each.began_s is not None for each in self._clusters.values()) < _MOST_AT_ONCE:
                cluster.due_s, cluster.began_s = _NEVER_S, now
                cluster.passes = cluster.passes or self._passes_of(cluster.name)
                self._start(partial(self._pass, cluster, cluster.passes, cluster.wanted))

    def _pass(self, cluster: Following, passes: Passes, intent: Intent) -> None:
        try:
            cluster.ended = passes.run(intent)
        except Exception as defect:  # noqa: BLE001 - a defect that one cluster shows does not end the passes over the others
            self._observers.log.write(logging.ERROR, "defect", traceback.format_exc(), cluster=cluster.name)
            text = f"this program has a defect: {type(defect).__name__}"
            cluster.ended = PassOutcome(result=PassResult.FAILED, reason="internal", message=text)
        self._requests.wake()

    def _collect(self) -> None:
        """Report the passes that ended, and when the next one is due. Forget clusters that are gone."""
        for cluster in tuple(self._clusters.values()):
            if cluster.ended is not None:
                self._report(cluster, cluster.ended)
            if cluster.is_gone and cluster.began_s is None:
                del self._clusters[cluster.name]
                self._observers.metrics.remove(cluster.name)

    def _report(self, cluster: Following, outcome: PassOutcome) -> None:
        is_first, now = cluster.last is None, self._monotonic()
        cluster.ended, cluster.last, cluster.began_s = None, outcome, None
        if outcome.counts is not None:
            cluster.looked_s = now
        cluster.failures = 0 if outcome.result.is_success else cluster.failures + 1
        if may_pass(outcome):
            cluster.due_s = min(cluster.due_s, now + retry_wait_s(cluster.failures, most_s=self._pace.interval_s))
        self._observers.pass_ended(cluster.name, outcome, failures=cluster.failures)
        if self._pace.is_strict and is_first and outcome.reason == UsageError.failure_reason:
            raise UsageError(outcome.message)


def may_pass(outcome: PassOutcome) -> bool:
    """Whether another pass may do better though no file changed."""
    if outcome.result in (PassResult.CLUSTER, PassResult.FAILED, PassResult.PARTIAL):
        return True
    return outcome.result is PassResult.REFUSED and outcome.reason in _PASSING


def retry_wait_s(failures: int, *, most_s: float) -> float:
    """Return the wait after so many failures in a row: five seconds, doubled each time, up to ``most_s``."""
    return min(most_s, _FIRST_RETRY_S * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
