"""Others who write during the run: the cluster is looked at before the first write, and again every few seconds.

Kafka has no compare-and-set for quotas, so another writer may come in unseen between a read and the write after it. Reading often
keeps that time short. A look is a full describe, which a large cluster takes a second for: looks take a tenth of a run at most.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.apply.outcomes import Outcomes, Stop
from reconciler.apply.readback import await_visible, difference_from_before, difference_from_written, first_few
from reconciler.apply.retry import RetryPolicy
from reconciler.errors import StalePlanError
from reconciler.logs import log_event
from reconciler.model import Change, ChangeStatus, Entity, Quotas
from reconciler.ports import Clock, QuotaCluster

_log: Final = logging.getLogger(__name__)

_SECONDS_BETWEEN: Final = 3.0
_COST_BETWEEN: Final = 9.0
"""At least so many times the duration of a look passes until the next one."""


class ConflictCheck:
    """Compares the cluster with what the run knows: ``before`` of what is not written, ``after`` of what is."""

    def __init__(
        self, cluster: QuotaCluster, outcomes: Outcomes, *, clock: Clock, retry: RetryPolicy, lag_seconds: float
    ) -> None:
        self._cluster = cluster
        self._outcomes = outcomes
        self._clock = clock
        self._retry = retry
        self._lag_seconds = lag_seconds
        self._next = clock.monotonic()

    @property
    def due(self) -> bool:
        """True when it is time for another look."""
        return self._clock.monotonic() >= self._next

    def look(self) -> Stop | None:
        """Read everything and compare; a stop names every entity that differs. Raises ``BackendError``."""
        started = self._clock.monotonic()
        written = self._outcomes.having(ChangeStatus.APPLIED)
        lag_until = started + min(self._lag_seconds, self._retry.budget.left)
        if written and not await_visible(self._cluster, written[-1], clock=self._clock, deadline=lag_until):
            message = f"the change to {written[-1].entity} was written, and does not show after {self._lag_seconds:g} s"
            return Stop(reason="not-verified", message=f"{message}: a broker lags, or another writer has undone it")
        live = self._retry.ask(self._cluster.current_state, also_unreachable=bool(written)).entities
        now = self._clock.monotonic()
        milliseconds = round((now - started) * 1000, 1)
        log_event(_log, "compared the cluster with the plan", entities=len(live), milliseconds=milliseconds)
        self._next = now + max(_SECONDS_BETWEEN, _COST_BETWEEN * (now - started))
        return self.compare(live, planned=self._outcomes.having(ChangeStatus.NOT_ATTEMPTED), written=written)

    def compare(self, live: Mapping[Entity, Quotas], *, planned: Sequence[Change], written: Sequence[Change] = ()) -> Stop | None:
        """What another writer did, noted with every entity that it happened to."""
        found = [(change, difference_from_before(change, live)) for change in planned]
        found += [(change, difference_from_written(change, live)) for change in written]
        differences = [(change, text) for change, text in found if text is not None]
        if not differences:
            return None
        for change, text in differences:
            self._outcomes.explain(change, text)
        texts = [text for _, text in differences]
        return Stop.of(StalePlanError(f"the cluster changed after planning: {first_few(texts)}; plan again"))
