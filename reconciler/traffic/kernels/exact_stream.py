"""Requests in, the exact verdict on each of them out: a stream of any length in constant memory, for many groups at once.

A group is one bucket on one broker. Keys of two groups are further apart than any window, so the vector form of the sampled rate
(``timeline.live_samples``) runs over all groups in one go. What a batch needs of those before it is the requests that are still
in live samples: they begin at a sample's start, so the chain of samples goes on from there as if nothing had been cut. The last
second of a batch waits for the next one, so that neither seconds nor requests of one moment are torn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.traffic.kernels.exact_sides import GroupLimits, Judged, QuotaReplay
from reconciler.traffic.kernels.exact_totals import Batch, ExactColumns, ReplayTotals, time_of
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.second_sums import Flags
from reconciler.traffic.kernels.timeline import Integers, Spans, live_samples


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """Requests in the order of charging; for each side one ``Judged``, and which requests are in a second that is over."""

    requests: Batch
    sides: tuple[Judged, ...]
    over: tuple[Flags, ...]


class ExactStream:
    """Feed batches in the order of their keys, then ``finish``; totals by group come last."""

    def __init__(self, sides: Sequence[GroupLimits], window: Window) -> None:
        self._window = window
        self._open = QuotaReplay(None, window)
        self._charges = tuple(QuotaReplay(side, window) for side in sides)
        self._totals = ReplayTotals(len(sides), window)
        self._held = Batch.empty()
        self._tail = np.empty(0, dtype=np.int64)

    def feed(self, batch: Batch) -> JudgedBatch | None:
        """What became decided. Raises ``ValueError`` when keys go back."""
        both = self._held.then(batch) if len(self._held) else batch
        if not len(both):
            return None
        if np.any(np.diff(both.keys) < 0) or (len(self._tail) and both.keys[0] < self._tail[-1]):
            raise ValueError("requests must be in the order of their groups and times")
        second = both.keys[-1] - time_of(both.keys[-1:])[0] % 1000
        whole = int(np.searchsorted(both.keys, second))
        self._held = both.part(slice(whole, None))
        return self._judge(both.part(slice(whole))) if whole else None

    def finish(self) -> JudgedBatch | None:
        """What was still waiting."""
        held, self._held = self._held, Batch.empty()
        return self._judge(held) if len(held) else None

    def totals(self) -> ExactColumns:
        """One row a group, by number. Ends the stream."""
        return self._totals.columns()

    def _judge(self, batch: Batch) -> JudgedBatch:
        batch = batch.in_order()
        live = self._live(batch.keys)
        opened = self._open.judge(batch, live)
        sides = tuple(charges.judge(batch, live) for charges in self._charges)
        over = self._totals.add(batch.keys, opened.rate, [side.throttle > 0 for side in sides])
        keys, begin = np.concatenate((self._tail, batch.keys)), -1
        if live is not None:
            begin = int(live.first[-1])
            for charges in (self._open, *self._charges):
                charges.keep_from(begin)
        self._tail = keys[begin:].copy()
        return JudgedBatch(batch, sides, over)

    def _live(self, keys: Integers) -> Spans | None:
        """Brokers up to 3.7 have no such form: there, a slot that was reset can be the oldest."""
        if self._window.era is Era.DROPPING:
            return None
        return live_samples(np.concatenate((self._tail, keys)), self._window)


def judge_one(
    times_ms: Integers, records: Integers, overhead: Integers, *, limit: float | None, unrecords: bool, window: Window
) -> Judged:
    """One bucket's whole history, in the order of charging, under one limit (``None``: unlimited)."""
    numbers = np.arange(len(times_ms), dtype=np.int64)
    side = GroupLimits(np.asarray([np.nan if limit is None else limit]), np.asarray([unrecords]))
    stream = ExactStream([side], window)
    batch = Batch(times_ms, numbers, records, overhead, numbers)
    parts = [part.sides[0] for part in (stream.feed(batch), stream.finish()) if part is not None]
    return Judged(*(np.concatenate([getattr(part, name) for part in parts]) for name in Judged.__slots__))
