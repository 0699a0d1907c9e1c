"""Writing requests, and reading the cluster before, between and after them.

A plan is cut by keys and size, never through an entity, and each request is sent until its fate is known. Changes that may have
been done are looked for on the cluster, and only those that are still as before are sent again. A KRaft controller refuses a
request of more than 10,000 changed keys as a whole (since 3.5), and one atomic batch must fit its 8 MiB raft batch, in which the
entity stands once for each of its keys. Each request waits for the quorum, so few large ones take less time than many.

Kafka has no compare-and-set for quotas, so another writer may come in unseen between a read and the write after it. Reading
often keeps that time short. Each is a full describe, which a large cluster takes a second for: reads take a tenth of a run at
most. Reads lag writes on KRaft, so reading back polls with a deadline.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.apply.outcomes import DEADLINE, Outcomes, RetryPolicy, Stop, is_transient
from reconciler.errors import (
    AuthorizationError,
    BackendError,
    OutcomeUnknownError,
    RequestRefusedError,
    StalePlanError,
    UnreachableError,
)
from reconciler.logs import log_event
from reconciler.model import DEFAULT, Change, ChangeStatus, Entity, KeyChange, Quotas, same_value
from reconciler.ports import BrokerNode, Clock, EntityFilter, EveryBroker, FilterComponent, FilterKind, QuotaCluster
from reconciler.text import list_some, number_text

_KEY_OVERHEAD: Final = 40
_ENTITY_OVERHEAD: Final = 40

_log: Final = logging.getLogger(__name__)


_NAMED: Final = 5
_NO_QUOTAS: Final[Quotas] = {}
_FIRST_WAIT: Final = 0.01
_LONGEST_WAIT: Final = 1.0
_WAITS_GROW: Final = 1.06
"""A read of one entity takes a millisecond, and what shows between two of them is waited for in vain."""
_SECONDS_BETWEEN: Final = 3.0
_COST_BETWEEN: Final = 9.0
"""At least so many times the duration of a look passes until the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Upper bounds of one request; an entity that is larger alone still goes, alone."""

    keys: int = 10_000
    size: int = 1024 * 1024
    """Bytes, estimated from the names' UTF-8 lengths."""


KEYS_IN_ZOOKEEPER: Final = 2_000
"""The most keys of a request to brokers that keep quotas in ZooKeeper: 5 ms for each entity, and an answer must come in 30 s."""


def split_into_requests(changes: Sequence[Change], limits: ChunkLimits) -> Iterator[tuple[Change, ...]]:
    """Yield the changes in order, in requests within the limits."""
    pending: list[Change] = []
    keys = size = 0
    for change in changes:
        change_size = _ENTITY_OVERHEAD + _KEY_OVERHEAD * len(change.keys)
        for _, name in change.entity.parts:
            if isinstance(name, str):
                change_size += len(name) if name.isascii() else len(name.encode("utf-8", "surrogatepass"))
        if pending and (keys + len(change.keys) > limits.keys or size + change_size > limits.size):
            yield tuple(pending)
            pending, keys, size = [], 0, 0
        pending.append(change)
        keys += len(change.keys)
        size += change_size
    if pending:
        yield tuple(pending)


class RequestWriter:
    """Writes requests, one after the other, and keeps the outcomes true at every moment."""

    def __init__(self, cluster: QuotaCluster, outcomes: Outcomes, conflicts: ConflictCheck, *, retry: RetryPolicy) -> None:
        self._cluster = cluster
        self._outcomes = outcomes
        self._conflicts = conflicts
        self._retry = retry
        self._budget = retry.budget
        self._doubt: OutcomeUnknownError | None = None

    def write(self, request: Sequence[Change]) -> Stop | None:
        """Write these changes, each of them not attempted yet. ``None``: all are applied."""
        pending: Sequence[Change] = request
        self._doubt = None
        stop: Stop | None = None
        for attempt, wait in enumerate(self._retry.backoff.waits(self._retry.jitter), start=1):
            failed = self._send(pending)
            if failed is None:
                log_event(_log, "request written", changes=len(pending), attempt=attempt)
                break
            stop = Stop.of(failed)
            log_event(
                _log,
                "request failed",
                level=logging.INFO,
                changes=len(pending),
                attempt=attempt,
                failure_reason=failed.failure_reason,
                reason=str(failed),
                wait_seconds=round(wait, 3) if is_transient(failed) else None,
            )
            if not is_transient(failed):
                self._look_again(request)
                return stop
            self._budget.sleep(wait)
            pending, changed = self._settled(pending)
            if changed is not None:
                return changed
            if not pending:
                break
            if not self._budget.left:
                return Stop(reason=DEADLINE, message=f"{self._budget}. The last error: {failed}")
        else:
            return stop
        return self._refusal(request) if any(self._outcomes.status(c) is not ChangeStatus.APPLIED for c in request) else None

    def _send(self, pending: Sequence[Change]) -> BackendError | None:
        """Send once; ``None``: there is an answer, and it is noted."""
        # Unknown until the answer is here, so that an interrupt in between is reported as what it is.
        self._outcomes.mark(pending, ChangeStatus.UNKNOWN, error=str(self._doubt or "no answer"))
        try:
            results = self._cluster.alter([change.alteration() for change in pending], validate_only=False)
        except BackendError as error:
            if isinstance(error, OutcomeUnknownError):
                self._doubt = error
            # What was sent before, and may have been done, stays unknown, whatever becomes of the same again.
            if self._doubt is not None:
                self._outcomes.mark(pending, ChangeStatus.UNKNOWN, error=str(self._doubt))
            elif isinstance(error, (RequestRefusedError, AuthorizationError)):
                self._outcomes.mark(pending, ChangeStatus.FAILED, error=str(error))
            else:
                self._outcomes.mark(pending, ChangeStatus.NOT_ATTEMPTED)
            return error
        self._outcomes.note(results, good=ChangeStatus.APPLIED)
        return None

    def _settled(self, pending: Sequence[Change]) -> tuple[Sequence[Change], Stop | None]:
        """Read the cluster again and return the alterations still to be sent. Sending one again is safe: they are idempotent."""
        try:
            live = self._cluster.current_state().entities
        except BackendError:
            return pending, None
        if self._doubt is not None:
            self._outcomes.mark([c for c in pending if unlike(c, live, written=True) is None], ChangeStatus.APPLIED)
            pending = [c for c in pending if unlike(c, live, written=True) is not None]
        return pending, self._conflicts.compare(live, planned=pending)

    def _refusal(self, request: Sequence[Change]) -> Stop | None:
        """Return why an answered request is not done whole. The cluster found a change that is not attempted changed."""
        self._look_again(request)
        left = [outcome for outcome in self._outcomes.of(request) if outcome.status is not ChangeStatus.APPLIED]
        if not left:
            return None
        stale = [outcome for outcome in left if outcome.status is ChangeStatus.NOT_ATTEMPTED]
        if stale:
            return Stop.of(StalePlanError(f"the cluster changed after planning: {stale[0].error}. Plan again"))
        return Stop(reason="refused-by-cluster", message="stopped after the first request that was not done whole")

    def _look_again(self, request: Sequence[Change]) -> None:
        """All this was accepted when it was validated: a refusal may be an answer that was garbled on its way."""
        refused = [change for change in request if self._outcomes.status(change) is ChangeStatus.FAILED]
        if not refused:
            return
        try:
            live = self._cluster.current_state().entities
        except BackendError:
            return
        self._outcomes.mark([change for change in refused if unlike(change, live, written=True) is None], ChangeStatus.APPLIED)


def unlike(change: Change, live: Mapping[Entity, Quotas], *, written: bool) -> tuple[KeyChange, float | None] | None:
    """Return the first key of the change that the cluster has not as ``written``, else not as before, with its value now."""
    quotas = live.get(change.entity, _NO_QUOTAS)
    for key in change.keys:
        now, expected = quotas.get(key.key), key.after if written else key.before
        if now != expected and not same_value(now, expected):
            return key, now
    return None


def differences(changes: Sequence[Change], live: Mapping[Entity, Quotas], *, written: bool) -> Iterator[tuple[Change, str]]:
    """Yield the changes that the cluster has not as ``written``, else not as before, each with a sentence about one key."""
    for change in changes:
        if (seen := unlike(change, live, written=written)) is not None:
            key, now = seen
            then = f", was written as {number_text(key.after)}, and" if written else " and"
            yield change, f"{change.entity} {key.key} was {number_text(key.before)} when planned{then} is {number_text(now)} now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every broker showed the planned values before the deadline; if not, ``message`` states what is missing where."""

    verified: bool
    message: str | None = None
    brokers: int = 0
    """How many were asked and show it."""


def verify(
    cluster: QuotaCluster, written: Sequence[Change], *, clock: Clock, deadline_seconds: float, most_seconds: float | None = None
) -> Verification:
    """Wait for the entity written last, read everything once, then ask every broker for it: metadata applies in order.

    ``deadline_seconds``: how long to wait without anything new showing; ``most_seconds``: how long at most. Brokers that leave
    the cluster's metadata meanwhile are not waited for: a broker that is down reads everything when it starts. Raises
    ``BackendError`` when the cluster cannot be read at all.
    """
    end = clock.monotonic() + (deadline_seconds if most_seconds is None else most_seconds)
    if (message := _not_read_back(cluster, written, clock=clock, seconds=deadline_seconds, end=end)) is not None:
        return Verification(verified=False, message=message)
    behind, current = _lagging_brokers(cluster, written[-1], clock=clock, deadline=min(end, clock.monotonic() + deadline_seconds))
    return Verification(verified=not behind, message=list_some(behind, _NAMED, between="; ") or None, brokers=current)


def await_visible(cluster: QuotaCluster, last: Change, *, clock: Clock, deadline: float) -> bool:
    """Whether a read has what was written last, waiting for it; also when another writer changed it since.

    Raises ``UnreachableError`` when no broker answers until the deadline.
    """
    gone: UnreachableError | None = None
    for _ in poll(clock, deadline):
        try:
            live = cluster.describe(exact_filter(last.entity))
        except UnreachableError as error:
            gone = error
            continue
        gone = None
        if unlike(last, live, written=True) is None or unlike(last, live, written=False) is not None:
            return True
    if gone is not None:
        raise gone
    return False


def exact_filter(entity: Entity) -> EntityFilter:
    """The filter that finds one entity and nothing else."""
    components = tuple(
        FilterComponent(entity_type=t, kind=FilterKind.DEFAULT)
        if n is DEFAULT
        else FilterComponent(entity_type=t, kind=FilterKind.EXACT, name=n)
        for t, n in entity.parts
    )
    return EntityFilter(components=components, strict=True)


def poll(clock: Clock, deadline: float) -> Iterator[None]:
    """Yield at once, then after growing waits until the deadline has passed."""
    wait = _FIRST_WAIT
    yield None
    while (left := deadline - clock.monotonic()) > 0:
        clock.sleep(min(wait, left))
        wait = min(_WAITS_GROW * wait, _LONGEST_WAIT)
        yield None


def _not_read_back(cluster: QuotaCluster, written: Sequence[Change], *, clock: Clock, seconds: float, end: float) -> str | None:
    missing: Sequence[Change] = written
    while True:
        before = len(missing)
        deadline = min(end, clock.monotonic() + seconds)
        # Asking for one entity is cheap; everything is read when there is something to see.
        caught_up = await_visible(cluster, written[-1], clock=clock, deadline=deadline)
        for _ in poll(clock, deadline if caught_up else clock.monotonic()):
            live = cluster.current_state().entities
            missing = [change for change in missing if unlike(change, live, written=True) is not None]
            if not missing:
                return None
            if any(unlike(change, live, written=False) is not None for change in missing):
                # Neither as before nor as written: another writer's; waiting does not bring ours back.
                return _unverified(missing, live, len(written))
        if len(missing) == before or clock.monotonic() >= end:
            return _unverified(missing, live, len(written))


def _unverified(missing: Sequence[Change], live: Mapping[Entity, Quotas], written: int) -> str:
    texts = [text for _, text in differences(missing, live, written=True)]
    return f"{len(texts)} of {written} entities do not read back as written: {list_some(texts, _NAMED, between='; ')}"


def _lagging_brokers(cluster: QuotaCluster, last: Change, *, clock: Clock, deadline: float) -> tuple[list[str], int]:
    """The brokers that do not show the last change at the deadline, each with the reason, and how many show it."""
    current = 0
    waiting = {broker.id: broker for broker in cluster.brokers()}
    hopeless: dict[int, str] = {}
    reasons: dict[int, str] = {}
    for _ in poll(clock, deadline):
        wanted = exact_filter(last.entity)
        ask = cluster.describe_on if isinstance(cluster, EveryBroker) else functools.partial(_ask_each, cluster)
        for number, answer in ask(wanted, tuple(waiting)).items():
            if isinstance(answer, BackendError):
                reasons[number] = f"{_broker_text(waiting[number])} does not answer: {answer}"
                if not isinstance(answer, UnreachableError):
                    hopeless[number] = reasons[number]
            elif unlike(last, answer, written=True) is None:
                current += 1
                del waiting[number]
            else:
                reasons[number] = f"{_broker_text(waiting[number])} does not show the change to {last.entity}"
        if waiting:
            present = {broker.id for broker in cluster.brokers()}
            waiting = {number: broker for number, broker in waiting.items() if number in present}
        if not waiting.keys() - hopeless.keys():
            break
    return [reasons[number] for number in sorted(waiting)], current


def _ask_each(
    cluster: QuotaCluster, wanted: EntityFilter, brokers: Sequence[int]
) -> Mapping[int, Mapping[Entity, Quotas] | BackendError]:
    answers: dict[int, Mapping[Entity, Quotas] | BackendError] = {}
    for broker in brokers:
        try:
            answers[broker] = cluster.describe(wanted, broker=broker)
        except BackendError as error:
            answers[broker] = error
    return answers


def _broker_text(broker: BrokerNode) -> str:
    return f"broker {broker.id} ({broker.host}:{broker.port})"


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
        self.due_at = clock.monotonic()
        """When it is time for another look, by the monotonic clock."""

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
        self.due_at = now + max(_SECONDS_BETWEEN, _COST_BETWEEN * (now - started))
        return self.compare(live, planned=self._outcomes.having(ChangeStatus.NOT_ATTEMPTED), written=written)

    def compare(self, live: Mapping[Entity, Quotas], *, planned: Sequence[Change], written: Sequence[Change] = ()) -> Stop | None:
        """Return a stop for the changes of another writer, and note each with its entity."""
        changed = [*differences(planned, live, written=False), *differences(written, live, written=True)]
        if not changed:
            return None
        for change, text in changed:
            self._outcomes.explain(change, text)
        texts = [text for _, text in changed]
        return Stop.of(
            StalePlanError(f"the cluster changed after planning: {list_some(texts, _NAMED, between='; ')}. Plan again")
        )
