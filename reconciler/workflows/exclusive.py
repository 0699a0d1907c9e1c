"""One run at a time, where the cluster can see to that."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Final

from reconciler.ports import Clock, ExclusiveRuns, QuotaCluster
from reconciler.workflows.audit import os_user

_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"


@contextlib.contextmanager
def only_run(cluster: QuotaCluster, *, writes: bool, clock: Clock) -> Iterator[None]:
    """Hold the cluster's lock, if it has one and the run ``writes``. Raises ``LockedError`` or ``BackendError`` on entering."""
    if not writes or not isinstance(cluster, ExclusiveRuns):
        yield
        return
    with cluster.exclusive(holder(clock)):
        yield


def holder(clock: Clock) -> str:
    """Who this run is, for whoever finds the lock held: ``user@host, process 123, since 2026-11-21T16:00:00Z``."""
    return f"{os_user()}@{socket.gethostname()}, process {os.getpid()}, since {clock.now().strftime(_FORMAT)}"
