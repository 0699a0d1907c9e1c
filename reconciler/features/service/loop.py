"""The loop: looks at the files every second, and runs a pass over each cluster when they changed or it is time.

One thread reads the manifests, for all clusters at once, and schedules. Each pass runs in a thread, so a cluster that is slow or
away does not delay the others. The manifests are read again after the interval with jitter, when a file changes, and when a value
of theirs expires; each reading leads to a pass. A pass that failed is repeated after a growing wait when that may help.
"""

from __future__ import annotations

import logging
import random
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from reconciler.errors import ManifestError, ReconcilerError, UsageError
from reconciler.features.service.manifests import Fingerprint, Reading, Watch
from reconciler.features.service.observers import Observers
from reconciler.features.service.passes import Passes, PassOutcome, PassResult, ended_by
from reconciler.model import ClusterFailure, display_name
from reconciler.text import count_of, list_some
from reconciler.workflows import Intent

_LOOK_S: Final = 1.0
"""How often the files are looked at. Two looks must agree: a checkout in the middle of its update is not an intent."""
_JITTER: Final = 0.1
"""The share of an interval that is added at random, so that many services do not come at once."""
_FIRST_RETRY_S: Final = 5.0
_MOST_AT_ONCE: Final = 8
_AFTER_EXPIRY_S: Final = 0.1
"""Between an expiry and the reading that sees it: the monotonic clock may be a little ahead of the other."""
_MOST_DOUBLINGS: Final = 32
_MOST_NAMED: Final = 10
_PASSING: Final = frozenset({"stale-plan", "locked"})
"""Refusals that mean that another writer is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often the manifests and clusters are read, in seconds. ``jitter`` returns a random number from 0 to 1."""

    interval_s: float
    jitter: Callable[[], float] = random.random


class Requests(Protocol):
    """What is asked of the service from outside, as ``SignalRequests`` has it."""

    def stop_wanted(self) -> bool:
        """Whether it shall end."""
        ...

    def take_reread(self) -> bool:
        """Whether everything shall be read now; once for each request."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait, or shorter when something is asked."""
        ...

    def wake(self) -> None:
        """End a ``wait``. Called by any thread."""
        ...


@dataclass(slots=True, kw_only=True)
class Following:
    """One cluster that the service follows. ``wanted``: the intent of the next pass, or how it ends without one."""

    name: str
    passes: Passes | None = None
    wanted: Intent | PassOutcome | None = None
    due_s: float = float("inf")
    """When the next pass begins, by the monotonic clock."""
    is_running: bool = False
    is_gone: bool = False
    """Whether no manifest declares it any more."""
    ended: PassOutcome | None = None
    """The pass that just ended, until the loop reports it."""
    last: PassOutcome | None = None
    failures: int = 0
    """Passes without success in a row."""


class Loop:
    """Follows the clusters of the manifests until it is stopped, never with two passes over one cluster at once.

    ``passes_of`` makes the passes of a cluster. ``is_strict``: an option that cannot work for the one cluster ends the loop.
    ``start`` runs a pass, in a thread of its own.
    """

    def __init__(
        self,
        watch: Watch,
        passes_of: Callable[[Following], Passes],
        *,
        pace: Pace,
        requests: Requests,
        observers: Observers,
        is_strict: bool,
        start: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._watch = watch
        self._passes_of = passes_of
        self._pace = pace
        self._requests = requests
        self._observers = observers
        self._is_strict = is_strict
        self._start = start or (lambda work: threading.Thread(target=work, name="pass", daemon=True).start())
        self._monotonic = observers.clock.monotonic
        self._clusters: dict[str, Following] = {}
        self._seen: Fingerprint | None = None
        self._read: Fingerprint | None = None
        """The files that were read last."""
        self._due_s = self._monotonic()
        """When the manifests are read next."""
        self._asked = False
        self._problem = ""

    def run(self) -> tuple[PassOutcome, ...]:
        """Go on until stopped. Returns the last pass of each cluster that had one.

        Raises ``UsageError`` when the first reading, or the first pass of a strict loop, finds that the options cannot work.
        """
        while not self._requests.stop_wanted():
            self._observers.health.beat()
            is_settled = self._look()
            self._collect()
            self._begin()
            self._requests.wait(self._pause() if is_settled else _LOOK_S)
        while any(cluster.is_running for cluster in self._clusters.values()):
            self._requests.wait(_LOOK_S)
            self._collect()
        return tuple(cluster.last for cluster in self._clusters.values() if cluster.last is not None)

    def _look(self) -> bool:
        """Read the manifests when that is due; false while the files change."""
        files = self._watch.fingerprint()
        is_settled, self._seen = files == self._seen, files
        self._asked = self._requests.take_reread() or self._asked
        if is_settled and (self._asked or files != self._read or self._monotonic() >= self._due_s):
            self._load(files)
        return is_settled

    def _load(self, files: Fingerprint) -> None:
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
        self._due_s = self._monotonic() + self._pace.interval_s * (1 + _JITTER * self._pace.jitter())
        if isinstance(loaded, ReconcilerError):
            self._offer_problem(ended_by(loaded, in_manifests=True))
        else:
            self._problem = ""
            self._follow({_name(each): each for each in loaded})

    def _offer_problem(self, outcome: PassOutcome) -> None:
        """Let a pass over each cluster end so, or over one without a name before any is known. The first one has the findings."""
        is_new, self._problem = outcome.message != self._problem, outcome.message
        if not self._clusters:
            self._clusters[""] = Following(name="")
        for number, cluster in enumerate(self._clusters.values()):
            cluster.wanted = outcome if is_new and not number else replace(outcome, details=())
            cluster.due_s = self._monotonic()

    def _follow(self, reading: Mapping[str, Intent | ClusterFailure]) -> None:
        skipped = [name for name, each in reading.items() if isinstance(each, ClusterFailure) and each.skipped]
        now = self._observers.clock.now()
        for name, each in reading.items():
            if name not in self._clusters and name in skipped:
                continue
            cluster = self._clusters.setdefault(name, Following(name=name))
            cluster.is_gone, cluster.due_s = False, self._monotonic()
            if isinstance(each, ClusterFailure):
                cluster.wanted = ended_by(ManifestError(each.message, findings=each.findings))
                continue
            cluster.wanted = each
            expiry = each.desired.next_expiry()
            if expiry is not None:
                until_s = max(0.0, (expiry - now).total_seconds()) + _AFTER_EXPIRY_S
                self._due_s = min(self._due_s, self._monotonic() + until_s)
        for name, cluster in self._clusters.items():
            cluster.is_gone = name not in reading
        if skipped:
            names = list_some([display_name(name) for name in skipped], _MOST_NAMED)
            text = f"{count_of(len(skipped), 'cluster')} without a trusted manifest: {names}"
            self._observers.log.write(logging.WARNING, "skipped", text)

    def _begin(self) -> None:
        """Begin the passes that are due, those that wait longest first."""
        now = self._monotonic()
        for cluster in sorted(self._clusters.values(), key=lambda cluster: cluster.due_s):
            if cluster.is_running:
                continue
            self._observers.health.beat_of(cluster.name)
            if cluster.is_gone or cluster.due_s > now:
                continue
            if isinstance(cluster.wanted, PassOutcome):
                cluster.due_s = float("inf")
                self._report(cluster, cluster.wanted)
            elif cluster.wanted and sum(each.is_running for each in self._clusters.values()) < _MOST_AT_ONCE:
                cluster.due_s, cluster.is_running = float("inf"), True
                cluster.passes = cluster.passes or self._passes_of(cluster)
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
            if cluster.is_gone and not cluster.is_running:
                del self._clusters[cluster.name]
                self._observers.remove(cluster.name)
                if cluster.name:
                    text = "is in no manifest any more, and is left as it is"
                    self._observers.log.write(logging.WARNING, "removed", text, cluster=cluster.name)

    def _report(self, cluster: Following, outcome: PassOutcome) -> None:
        is_first = cluster.last is None
        cluster.ended, cluster.last, cluster.is_running = None, outcome, False
        cluster.failures = 0 if outcome.result.is_success else cluster.failures + 1
        if may_pass(outcome):
            wait_s = retry_wait_s(cluster.failures, most_s=self._pace.interval_s, jitter=self._pace.jitter())
            cluster.due_s = min(cluster.due_s, self._monotonic() + wait_s)
        self._observers.pass_ended(cluster.name, outcome, failures=cluster.failures)
        if self._is_strict and is_first and outcome.reason == UsageError.failure_reason:
            raise UsageError(outcome.message)

    def _pause(self) -> float:
        """Seconds until something is due, and a look at the files at the latest."""
        now = self._monotonic()
        dues = [cluster.due_s - now for cluster in self._clusters.values() if not cluster.is_running]
        return min((due for due in (_LOOK_S, self._due_s - now, *dues) if due > 0), default=_LOOK_S)


def may_pass(outcome: PassOutcome) -> bool:
    """Whether another pass may do better though no file changed."""
    if outcome.result in (PassResult.CLUSTER, PassResult.FAILED, PassResult.PARTIAL):
        return True
    return outcome.result is PassResult.REFUSED and outcome.reason in _PASSING


def retry_wait_s(failures: int, *, most_s: float, jitter: float) -> float:
    """Return the wait after so many failures in a row. ``jitter``, from 0 to 1, is how much of its second half is waited."""
    doubled = min(_FIRST_RETRY_S, most_s) * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
    return min(doubled, most_s) * (1 + jitter) / 2


def _name(each: Intent | ClusterFailure) -> str:
    return (each.cluster.name if isinstance(each, ClusterFailure) else each.spec.name) or ""
