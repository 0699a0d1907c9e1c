"""Random arrivals in the patterns that tell models of Kafka's rate apart."""

from __future__ import annotations

import numpy as np

PATTERNS = ("dense", "sparse", "bursts", "fixed timer", "same millisecond", "long pauses")
START_MS = 1_700_000_000_000


def arrivals(pattern: str, seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times in ms (rising, not strictly), header bytes and record bytes."""
    random = np.random.default_rng(seed)
    gaps = {
        "dense": lambda: random.integers(0, 20, count),
        "sparse": lambda: random.integers(0, 4000, count),
        "bursts": lambda: np.where(random.random(count) < 0.05, random.integers(500, 13000, count), random.integers(0, 3, count)),
        "fixed timer": lambda: np.full(count, random.choice([100, 250, 500, 1000, 1100, 11000])),
        "same millisecond": lambda: np.where(
            random.random(count) < 0.8, 0, random.choice([1, 999, 1000, 1001, 10999, 11000], count)
        ),
        "long pauses": lambda: random.choice([1, 900, 1000, 9999, 10000, 10999, 11000, 11001, 12000, 60000], count),
    }[pattern]()
    times = START_MS + int(random.integers(0, 1000)) + np.cumsum(gaps)
    return times.astype(np.int64), random.integers(0, 300, count), random.integers(0, 20000, count)
