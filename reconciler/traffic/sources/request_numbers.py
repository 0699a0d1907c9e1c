"""Whether a request log has all its lines: clients number their requests, so the numbers of a whole log have few gaps.

A Java client counts its requests in one sequence over the connections to all brokers, other clients count on each connection.
So gaps are looked for per client-id and address, over all logs together. Several processes with the same client-id and address
only make gaps smaller, which may hide missing lines and never invents them.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

from reconciler.traffic.kernels.timeline import Integers

REQUEST_NUMBER: Final = "request_number"
"""The column: in the high 32 bits a hash of the client, in the low ones its correlation id; null where a line was not decoded."""
FEWEST_STEPS: Final = 100
"""Fewer pairs of consecutive requests prove nothing."""
WHOLE_STEP: Final = 2.0
"""A log whose usual step is larger lacks more than half of its lines."""
_LOW: Final = (1 << 32) - 1
_CLIENTS_KEPT: Final = 100_000


class RequestNumbers:
    """The values of ``REQUEST_NUMBER``; hashes of the clients met last are kept."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, str], int] = {}

    def of(self, connection: str, client_id: str, correlation_id: int | None) -> int | None:
        """``connection``: as Kafka logs it, ``LOCAL:PORT-REMOTE:PORT-...``; the remote port tells nothing about the client."""
        if correlation_id is None:
            return None
        key = connection, client_id
        found = self._hashes.get(key)
        if found is None:
            if len(self._hashes) >= _CLIENTS_KEPT:
                self._hashes.clear()
            address = connection.split("-", 2)[1].rpartition(":")[0] if connection.count("-") else connection
            text = f"{address}\0{client_id}".encode("utf-8", "surrogatepass")
            digest = hashlib.blake2b(text, digest_size=4).digest()
            found = self._hashes[key] = int.from_bytes(digest, "little", signed=True) << 32
        return found | (correlation_id & _LOW)


def usual_step(numbers: Integers) -> float | None:
    """The median distance between consecutive correlation ids of one client; ``None``: too few requests to tell.

    ``numbers``: values of ``REQUEST_NUMBER``, shape (n,), in any order and some of them several times. Of a whole log it is 1;
    of a random sample of the lines it is near 1 divided by the sampled share.
    """
    distinct = np.unique(numbers)
    steps = np.diff(distinct)[np.diff(distinct >> 32) == 0]
    return float(np.median(steps)) if len(steps) >= FEWEST_STEPS else None
