"""A loop of its own for each cluster of the manifests: it waits after failures by itself, and others go on."""

from __future__ import annotations

import contextlib
import logging
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from reconciler.errors import ReconcilerError, UsageError
from reconciler.features.service.log import Log
from reconciler.features.service.loop import Loop, Pace, Requests
from reconciler.features.service.passes import PassOutcome, finding_lines
from reconciler.features.service.watch import SharedManifests
from reconciler.model import ClusterFailure, display_name
from reconciler.ports import Clock
from reconciler.text import count_of, list_some

_SETTLE_S: Final = 1.0
_MOST_NAMED: Final = 10


class LoopRequests:
    """What is asked of the loop of one cluster: by signals to the process, or because the cluster is gone."""

    def __init__(self, service: Requests) -> None:
        self._service = service
        self._asked = threading.Event()
        self._reread = False
        self._ended = False

    def stop_wanted(self) -> bool:
        """True once the service, or this loop, shall end."""
        return self._ended or self._service.stop_wanted()

    def hold(self) -> None:
        """Raise nothing from now on in the thread that joins the loops: a write that began is recorded."""
        self._service.hold()

    def breakable(self) -> AbstractContextManager[None]:
        """An interrupt is raised in the main thread, and no loop runs there."""
        return contextlib.nullcontext()

    def take_reread(self) -> bool:
        """True once after each ``reread``."""
        taken, self._reread = self._reread, False
        return taken

    def wait(self, seconds: float) -> None:
        """Wait, or shorter when something is asked."""
        self._asked.wait(seconds)
        self._asked.clear()

    def reread(self) -> None:
        """Ask for a pass now."""
        self._reread = True
        self._asked.set()

    def end(self) -> None:
        """Ask it to end after the request in progress."""
        self._ended = True
        self._asked.set()

    def wake(self) -> None:
        """Let it look whether the service shall end."""
        self._asked.set()


class Clusters(Protocol):
    """Makes and forgets what belongs to the loop of one cluster."""

    def add(self, cluster: str, requests: LoopRequests) -> Loop:
        """The loop of a cluster that the manifests declare."""
        ...

    def remove(self, cluster: str) -> None:
        """The loop of this cluster ended for good."""
        ...


@dataclass(slots=True, kw_only=True)
class _Running:
    """One loop in its thread. ``last``: its last pass, once it ended."""

    requests: LoopRequests
    thread: threading.Thread
    last: PassOutcome | None = None

    def note(self, last: PassOutcome | None) -> None:
        """The loop ended."""
        self.last = last


class ClusterLoops:
    """Follows the list of clusters: begins a loop for each new one, and ends that of one that no manifest declares any more."""

    def __init__(
        self, shared: SharedManifests, clusters: Clusters, *, pace: Pace, requests: Requests, log: Log, clock: Clock
    ) -> None:
        self._shared = shared
        self._clusters = clusters
        self._pace = pace
        self._requests = requests
        self._log = log
        self._clock = clock
        self._loops: dict[str, _Running] = {}
        self._reported: object = None

    def run(self) -> tuple[PassOutcome, ...]:
        """Go on until stopped. The last pass of each cluster that had one.

        Raises ``UsageError`` when the first reading finds that the options cannot work, e.g. manifests without a cluster.
        """
        read, due = None, self._clock.monotonic()
        try:
            while not self._requests.stop_wanted():
                settled = self._shared.look()
                reread = self._requests.take_reread()
                if reread:
                    self._shared.forget()
                files = self._shared.published
                if settled and (reread or files != read or self._clock.monotonic() >= due):
                    good = self._follow(is_first=read is None)
                    read = files
                    due = self._clock.monotonic() + (self._pace.interval if good else self._pace.longest_retry)
                    if reread:
                        for running in self._loops.values():
                            running.requests.reread()
                self._requests.wait(self._pace.poll if settled else min(self._pace.poll, _SETTLE_S))
        finally:
            for running in self._loops.values():
                running.requests.wake()
        return self._joined()

    def _follow(self, *, is_first: bool) -> bool:
        """Have a loop for each cluster of the manifests; false when they cannot be read."""
        try:
            intents = self._shared.intents()
        except UsageError as error:
            if is_first:
                raise
            return self._report(error)
        except ReconcilerError as error:
            return self._report(error)
        self._reported = None
        skipped = {name: each for name, each in intents.items() if isinstance(each, ClusterFailure) and each.skipped}
        for name in [name for name in self._loops if name not in intents]:
            self._end(name)
        for name in intents:
            if name not in self._loops and name not in skipped:
                self._begin(name)
        if skipped:
            names = list_some([display_name(name) for name in skipped], _MOST_NAMED)
            self._log.write(
                logging.WARNING, "skipped", f"{count_of(len(skipped), 'cluster')} without a trusted manifest: {names}"
            )
        return True

    def _report(self, error: ReconcilerError) -> bool:
        if str(error) != self._reported:
            for line in finding_lines(error):
                self._log.write(logging.ERROR, "finding", line)
            self._log.write(logging.ERROR, "invalid", f"nothing is applied to any cluster: {error}")
        self._reported = str(error)
        return False

    def _begin(self, name: str) -> None:
        requests = LoopRequests(self._requests)
        loop = self._clusters.add(name, requests)
        # A defect that ends one loop leaves the others. Python prints it, and the page about health shows the silence.
        thread = threading.Thread(target=lambda: running.note(loop.run()), name=f"cluster {name}", daemon=True)
        running = self._loops[name] = _Running(requests=requests, thread=thread)
        thread.start()

    def _end(self, name: str) -> None:
        running = self._loops.pop(name)
        running.requests.end()
        running.thread.join()
        self._clusters.remove(name)
        self._log.write(
            logging.WARNING, "removed", f"cluster {display_name(name)} is in no manifest any more, and is left as it is"
        )

    def _joined(self) -> tuple[PassOutcome, ...]:
        for running in self._loops.values():
            running.thread.join()
        return tuple(running.last for running in self._loops.values() if running.last is not None)
