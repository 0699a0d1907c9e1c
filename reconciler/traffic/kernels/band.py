"""How far a throttle can be known: the range it takes when every charge time is off by up to some milliseconds.

A log's times are not to the millisecond, and one millisecond moves a request at a sample's boundary into another sample, which
moves the whole chain after it. No better model helps; a range does. Each request's noise is drawn from its own content, so the
range is the same for any partitioning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from reconciler.traffic.kernels.exact_stream import ExactStream, GroupLimits, JudgedBatch
from reconciler.traffic.kernels.exact_totals import Batch
from reconciler.traffic.kernels.sampled_rate import Integers, Window

REPLAYS: Final = 25
NOISE_MS: Final = 10
"""By how much the times of two runs of the same traffic differ, 95 of 100 of them, where the machine has other work."""


@dataclass(frozen=True, slots=True)
class Bands:
    """The lowest and highest throttle in ms of requests, by the numbers that the caller knows them by."""

    rows: Integers
    low: Integers
    high: Integers


class BandStream:
    """Feed the same batches as an ``ExactStream`` of one side; the ranges come out as they become known, in any order."""

    def __init__(self, side: GroupLimits, window: Window, *, noise_ms: int = NOISE_MS, replays: int = REPLAYS) -> None:
        self._replays = tuple(_Replay(ExactStream([side], window), number, noise_ms) for number in range(replays))
        self._rows = np.empty(0, dtype=np.int64)
        self._found = np.empty((replays, 0), dtype=np.int64)

    def feed(self, batch: Batch) -> Bands:
        """The next requests; their ``rows`` must rise."""
        self._grow(batch.rows)
        for number, replay in enumerate(self._replays):
            self._note(number, replay.feed(batch))
        return self._ready()

    def finish(self) -> Bands:
        """Everything that was still waiting."""
        for number, replay in enumerate(self._replays):
            for judged in replay.finish():
                self._note(number, judged)
        return self._ready()

    def _grow(self, rows: Integers) -> None:
        self._rows = np.concatenate((self._rows, rows))
        unknown = np.full((len(self._replays), len(rows)), _UNKNOWN, dtype=np.int64)
        self._found = np.concatenate((self._found, unknown), axis=1)

    def _note(self, number: int, judged: JudgedBatch | None) -> None:
        if judged is not None:
            places = np.searchsorted(self._rows, judged.requests.rows)
            self._found[number, places] = np.maximum(judged.sides[0].throttle, 0)

    def _ready(self) -> Bands:
        known = (self._found != _UNKNOWN).all(axis=0)
        ranges = self._found[:, known]
        bands = Bands(self._rows[known], ranges.min(axis=0), ranges.max(axis=0))
        self._rows, self._found = self._rows[~known], self._found[:, ~known]
        return bands


_UNKNOWN: Final = -1


class _Replay:
    """One replay with its own noise. What noise may still overtake waits for the next batch."""

    def __init__(self, stream: ExactStream, number: int, most_ms: int) -> None:
        self._stream = stream
        self._number = number
        self._most_ms = most_ms
        self._waiting = Batch.empty()

    def feed(self, batch: Batch) -> JudgedBatch | None:
        if not len(batch):
            return None
        moved = Batch(
            batch.keys + noise_ms(batch.order, self._number, self._most_ms),
            batch.order,
            batch.records,
            batch.overhead,
            batch.rows,
        )
        both = self._waiting.then(moved)
        both = both.part(np.argsort(both.keys, kind="stable"))
        # A later request is at least as late as the last of this batch, and its noise at most so far back.
        decided = int(np.searchsorted(both.keys, batch.keys[-1] - self._most_ms))
        self._waiting = both.part(slice(decided, None))
        return self._stream.feed(both.part(slice(decided)))

    def finish(self) -> tuple[JudgedBatch | None, ...]:
        waiting, self._waiting = self._waiting, Batch.empty()
        return self._stream.feed(waiting), self._stream.finish()


def noise_ms(order: Integers, replay: int, most_ms: int = NOISE_MS) -> Integers:
    """Whole ms from -``most_ms`` to ``most_ms``, all alike often: a mix of the request's own number and the replay's."""
    mixed = (order.astype(np.uint64) + np.uint64((replay + 1) * 0x9E3779B97F4A7C15 % 2**64)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(29)
    return np.asarray(mixed % np.uint64(2 * most_ms + 1), dtype=np.int64) - most_ms
