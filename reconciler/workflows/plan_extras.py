"""What a plan may show beyond its changes: a broker's opinion, and whom it affects."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import UsageError
from reconciler.model import CurrentState, Plan
from reconciler.ports import Progress, QuotaCluster, QuotaReader
from reconciler.workflows.known_clients import read_known_clients
from reconciler.workflows.plan_effects import with_effects
from reconciler.workflows.server_check import check_in_sandbox, check_on_cluster
from reconciler.workflows.trusted import TrustedTree


class Checker(enum.StrEnum):
    """Who checks a plan, validate-only."""

    CLUSTER = "cluster"
    SANDBOX = "sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is wanted; by default nothing."""

    server_check: Checker | None = None
    show_effects: bool = False
    known_clients: Path | None = None
    """More clients whose effects are shown, as JSON lines."""


def plan_with(
    extras: Extras,
    make: Callable[[QuotaReader], Plan],
    source: QuotaReader,
    *,
    trusted: TrustedTree | None = None,
    progress: Progress,
) -> Plan:
    """The plan that ``make`` makes of ``source``, which is read once, with what is wanted.

    Raises ``UsageError`` when a cluster is to check and ``source`` is none, ``UntrustedError`` for known clients that a pull
    request brings, and as ``make``, the checks, and ``read_known_clients``.
    """
    live = _cluster(source) if extras.server_check is Checker.CLUSTER else None
    if trusted is not None and extras.known_clients is not None:
        trusted.files.require_same(str(extras.known_clients))
    traffic = read_known_clients(extras.known_clients) if extras.known_clients is not None else frozenset()
    reader = _ReadOnce(source)
    plan = make(reader)
    if extras.show_effects:
        plan = with_effects(plan, reader.current_state(), source=source, traffic=traffic)
    if extras.server_check is Checker.SANDBOX:
        plan = check_in_sandbox(plan, reader.current_state(), progress=progress)
    if live is not None:
        plan = check_on_cluster(plan, live, progress=progress)
    return plan


class _ReadOnce:
    """A ``QuotaReader`` that remembers."""

    def __init__(self, source: QuotaReader) -> None:
        self._source = source
        self._state: CurrentState | None = None

    def current_state(self) -> CurrentState:
        """The state as it was read first."""
        if self._state is None:
            self._state = self._source.current_state()
        return self._state


def _cluster(source: QuotaReader) -> QuotaCluster:
    if not isinstance(source, QuotaCluster):
        msg = "--server-check=cluster asks a live cluster, and --current names a snapshot; --server-check=sandbox works with both"
        raise UsageError(msg)
    return source
