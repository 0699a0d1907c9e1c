"""What a plan shows beyond its changes: effects on known clients, and a broker's check."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.errors import BackendError, FileAccessError, UsageError
from reconciler.model import CurrentState, Plan, PlanEffects, display_name
from reconciler.planning import quotas_after
from reconciler.ports import CallbackInspector, Progress, QuotaCluster, QuotaReader
from reconciler.resolution import effects_between, unclear_effects
from reconciler.text import did_you_mean, shown
from reconciler.workflows.server_check import check_in_sandbox, check_on_cluster
from reconciler.workflows.trusted import TrustedTree


def with_effects(plan: Plan, current: CurrentState, *, source: object, traffic: Iterable[tuple[str, str]] = ()) -> Plan:
    """The plan with its effects on the clients that its entities name, and on ``traffic``'s pairs of user and client id.

    ``source`` is what ``current`` was read from: when it can tell that the brokers resolve quotas with code of their own, the
    effects are unknown, and a note says so.
    """
    callback, notes = _callback(source)
    if callback is not None:
        reason = (
            f"the brokers resolve quotas with their own client.quota.callback.class, {display_name(callback)}; "
            "which limit a client gets is not known"
        )
        return replace(plan, effects=PlanEffects(unknown=reason), notes=(*plan.notes, f"effects are unknown: {reason}"))
    changed = quotas_after(current.entities, plan.changes)
    effects = effects_between(current.entities, changed, traffic=traffic)
    unclear = unclear_effects(current.entities, changed)
    if unclear and effects == PlanEffects():
        # Nothing else moves, so "no effect" would be said of just the address whose effect is not known.
        effects, unclear = PlanEffects(unknown="; ".join(unclear)), ()
    about = (f"effects on an address are unknown: {reason}" for reason in unclear)
    return replace(plan, effects=effects, notes=(*plan.notes, *notes, *about))


def _callback(source: object) -> tuple[str | None, tuple[str, ...]]:
    """The class, if any, and a note when nobody could tell."""
    assumed = "effects assume that brokers resolve quotas as Kafka does"
    if not isinstance(source, CallbackInspector):
        return None, (f"{assumed}; it was not read whether they have a client.quota.callback.class",)
    try:
        return source.quota_callback(), ()
    except BackendError as error:
        return None, (f"{assumed}; no broker told whether they have a client.quota.callback.class: {error}",)


_CLIENT_ID: Final = "client-id"
_SPELLINGS: Final = (_CLIENT_ID, "client_id")
"""The second is the name of the column in recorded traffic, and was the only one that this file knew."""


def read_known_clients(path: Path) -> frozenset[tuple[str, str]]:
    """Distinct pairs of a principal's name and a client id; one that is ``null``, empty or absent is a client without an id.

    Empty lines are ignored. Raises ``FileAccessError`` with the line for anything else, unknown fields included.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return frozenset(_pair(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip())
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise FileAccessError(f"{path} is not UTF-8 text") from None


def _pair(line: str, where: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _refused(where, "this is not JSON") from None
    if not isinstance(row, dict):
        raise _refused(where, "this is not an object")
    known = ("user", *_SPELLINGS)
    for field in row:
        if field not in known:
            raise _refused(where, f"the field {shown(field)} is unknown{did_you_mean(field, known)}")
    spelled = [name for name in _SPELLINGS if name in row]
    if len(spelled) > 1:
        raise _refused(where, f"{' and '.join(spelled)} are the same field; write one of them")
    user, client_id = row.get("user"), row[spelled[0]] if spelled else None
    if not isinstance(user, str):
        raise _refused(where, "user is not a string")
    if not isinstance(client_id, str | None):
        raise _refused(where, f"{spelled[0]} is not a string")
    return user, client_id or ""


def _refused(where: str, reason: str) -> FileAccessError:
    return FileAccessError(f'{where}: {reason}; a line is {{"user": "alice", "client-id": "app"}}')


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
