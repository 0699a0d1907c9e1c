"""What a plan may show beyond its changes: a broker's opinion, and whom it affects."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import UsageError
from reconciler.model.plan import Plan
from reconciler.model.state import CurrentState
from reconciler.ports import Clock, Progress, QuotaCluster, QuotaReader
from reconciler.workflows.known_clients import read_known_clients
from reconciler.workflows.plan import Intent, make_plan
from reconciler.workflows.plan_effects import with_effects
from reconciler.workflows.server_check import check_in_sandbox, check_on_cluster


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


def add_extras(plan: Plan, extras: Extras, current: CurrentState, source: QuotaReader, *, progress: Progress) -> Plan:
    """The plan with what is wanted; ``current`` is what it was made from, read from ``source``.

    Raises ``UsageError`` when a cluster is to check and ``source`` is none, and as the checks and ``read_known_clients``.
    """
    if extras.show_effects:
        traffic = read_known_clients(extras.known_clients) if extras.known_clients is not None else frozenset()
        plan = with_effects(plan, current, source=source, traffic=traffic)
    if extras.server_check is Checker.SANDBOX:
        return check_in_sandbox(plan, current, progress=progress)
    if extras.server_check is Checker.CLUSTER:
        return check_on_cluster(plan, _cluster(source), progress=progress)
    return plan


def make_plan_with(
    extras: Extras, intent: Intent, source: QuotaReader, *, accepted: Sequence[str], clock: Clock, progress: Progress
) -> Plan:
    """``make_plan`` and ``add_extras``, with one reading of the state. Raises as they do."""
    if extras.server_check is Checker.CLUSTER:
        _cluster(source)
    read_once = _ReadOnce(source)
    plan = make_plan(intent, read_once, accepted=accepted, clock=clock)
    return add_extras(plan, extras, read_once.current_state(), source, progress=progress)


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
