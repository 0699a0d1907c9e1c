"""Notifications of a running service: of what a pass changed or found, once, until it changes or is resolved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from reconciler.features.notifications.notification import Notification, NotificationEvent
from reconciler.features.service.log import Log
from reconciler.features.service.passes import PassOutcome, PassResult
from reconciler.model import ClusterIdentity, ClusterSpec, Webhook
from reconciler.ports import Clock

_EVENTS: Final = {
    PassResult.APPLIED: NotificationEvent.APPLIED,
    PassResult.DIFFERS: NotificationEvent.DRIFT,
    PassResult.IN_SYNC: NotificationEvent.RESOLVED,
}
"""Of every other result: ``FAILED``. Files that change while they are read make no notification."""


class PassNotifier:
    """Sends what is new. ``send`` returns the problems of the webhooks."""

    def __init__(self, send: Callable[[Sequence[Webhook], Notification], Sequence[str]], log: Log, *, clock: Clock) -> None:
        self._send = send
        self._log = log
        self._clock = clock
        self._last: tuple[object, ...] | None = None

    def pass_ended(self, spec: ClusterSpec, cluster: ClusterIdentity | None, outcome: PassOutcome) -> None:
        """Notify of a pass, unless the pass before ended the same."""
        if outcome.result is PassResult.CHANGING or not spec.notifications:
            return
        event = _EVENTS.get(outcome.result, NotificationEvent.FAILED)
        signature = _signature(event, outcome)
        before, self._last = self._last, signature
        if signature == before or (event is NotificationEvent.RESOLVED and _is_calm(before)):
            return
        counts = outcome.counts
        drifted = {drift.value: count for drift, count in counts.drift.items() if count and drift.is_difference} if counts else {}
        notification = Notification(
            event=event,
            command="run",
            at=self._clock.now(),
            cluster=(cluster or ClusterIdentity()).named(spec.name),
            summary=outcome.message or outcome.result.value,
            reason=outcome.reason,
            counts={**drifted, **outcome.written_by_status()},
        )
        for problem in self._send(spec.notifications, notification):
            self._log.write(logging.WARNING, "notification", problem)


def _signature(event: NotificationEvent, outcome: PassOutcome) -> tuple[object, ...]:
    if event is NotificationEvent.RESOLVED:
        return (event,)
    if event is NotificationEvent.FAILED and outcome.counts is None:
        # Words of a cluster that does not answer differ from pass to pass.
        return (event, outcome.result, outcome.reason)
    return (event, outcome.result, outcome.reason, outcome.message)


def _is_calm(signature: tuple[object, ...] | None) -> bool:
    """Whether nothing was wrong before: the first pass, or one that wrote everything."""
    return signature is None or signature[0] is NotificationEvent.APPLIED
