"""Notifications of a running service: each event once, until it changes or is resolved."""

from __future__ import annotations

import io

import pytest

from reconciler.features.notifications.notification import Notification, NotificationEvent
from reconciler.features.service.log import Log, LogFormat
from reconciler.features.service.notifier import PassNotifier
from reconciler.features.service.passes import EntityCounts, PassOutcome, PassResult
from reconciler.model.cluster import Webhook
from reconciler.model.state import ClusterIdentity
from tests.builders import cluster_spec
from tests.fakes import FakeClock

HOOK = Webhook(name="ops", variable="HOOK")
SPEC = cluster_spec(notifications=(HOOK,))
SYNC = PassOutcome(result=PassResult.IN_SYNC, message="all")
DRIFT_A = PassOutcome(result=PassResult.DIFFERS, message="not written: a", counts=EntityCounts(drift={}, planned={}))
DRIFT_B = PassOutcome(result=PassResult.DIFFERS, message="not written: b", counts=EntityCounts(drift={}, planned={}))
WRITTEN = PassOutcome(result=PassResult.APPLIED, message="applied a")
DOWN = PassOutcome(result=PassResult.CLUSTER, reason="unreachable", message="no answer after 3.1 s")
DOWN_AGAIN = PassOutcome(result=PassResult.CLUSTER, reason="unreachable", message="no answer after 3.2 s")
DENIED = PassOutcome(result=PassResult.CLUSTER, reason="authorization", message="denied")
CHANGING = PassOutcome(result=PassResult.CHANGING)

E = NotificationEvent


def events(*outcomes: PassOutcome, problems: tuple[str, ...] = ()) -> tuple[list[NotificationEvent], str]:
    sent: list[Notification] = []
    stream = io.StringIO()

    def send(_: object, notification: Notification) -> tuple[str, ...]:
        sent.append(notification)
        return problems

    clock = FakeClock()
    notifier = PassNotifier(send, Log(stream, LogFormat.TEXT, clock=clock), clock=clock)
    for outcome in outcomes:
        notifier.pass_ended(SPEC, ClusterIdentity(id="c1"), outcome)
    assert all(notification.command == "run" and notification.cluster.id == "c1" for notification in sent)
    return [notification.event for notification in sent], stream.getvalue()


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((SYNC, SYNC), []),
        ((DRIFT_A, DRIFT_A, DRIFT_A), [E.DRIFT]),
        ((DRIFT_A, DRIFT_B, DRIFT_B), [E.DRIFT, E.DRIFT]),
        ((DRIFT_A, SYNC, SYNC, DRIFT_A), [E.DRIFT, E.RESOLVED, E.DRIFT]),
        ((WRITTEN, SYNC, SYNC), [E.APPLIED]),
        ((WRITTEN, WRITTEN), [E.APPLIED]),
        ((DOWN, DOWN_AGAIN, DENIED, SYNC), [E.FAILED, E.FAILED, E.RESOLVED]),
        ((DRIFT_A, CHANGING, DRIFT_A), [E.DRIFT]),
        ((DOWN, WRITTEN, SYNC), [E.FAILED, E.APPLIED]),
    ],
)
def test_an_event_is_sent_once_until_it_changes_or_is_resolved(outcomes, expected):
    assert events(*outcomes)[0] == expected


def test_a_cluster_without_webhooks_sends_nothing():
    sent: list[Notification] = []
    clock = FakeClock()
    notifier = PassNotifier(
        lambda _, notification: sent.append(notification) or (),  # type: ignore[func-returns-value]  # as a list of calls
        Log(io.StringIO(), LogFormat.TEXT, clock=clock),
        clock=clock,
    )
    notifier.pass_ended(cluster_spec(), None, DRIFT_A)
    assert sent == []


def test_a_problem_of_a_webhook_is_a_warning_in_the_log():
    _, log = events(DRIFT_A, DRIFT_A, problems=("webhook ops was not notified of drift: no connection",))
    assert log.count("webhook ops was not notified of drift: no connection") == 1
