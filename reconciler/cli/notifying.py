"""Notifications of a command: sent last, and never the reason for another exit code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconciler.cli import output
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import ApplyReport, ClusterSpec, Drift, Notification


def notify_of_report(spec: ClusterSpec | None, report: ApplyReport, *, command: str) -> None:
    """What a write did, if anything."""
    if spec is None or not spec.notifications:
        return
    from reconciler.ports import SystemClock
    from reconciler.workflows import notification_of_report

    _send(spec, notification_of_report(report, command=command, at=SystemClock().now()))


def notify_of_drift(spec: ClusterSpec, drift: Drift) -> None:
    """The differences, if any."""
    if not spec.notifications:
        return
    from reconciler.ports import SystemClock
    from reconciler.workflows import notification_of_drift

    _send(spec, notification_of_drift(drift, at=SystemClock().now()))


def notify_of_error(spec: ClusterSpec | None, error: BaseException, *, command: str) -> None:
    """A run that an error ended; not one that was called wrongly or interrupted."""
    if spec is None or not spec.notifications or not isinstance(error, Exception) or isinstance(error, UsageError):
        return
    from reconciler.model import ClusterIdentity
    from reconciler.ports import SystemClock
    from reconciler.workflows import notification_of_error

    cluster = ClusterIdentity(name=spec.name, id=spec.cluster_id)
    _send(spec, notification_of_error(error, command=command, cluster=cluster, at=SystemClock().now()))


def _send(spec: ClusterSpec, notification: Notification | None) -> None:
    if notification is None:
        return
    from reconciler.workflows import send_notification

    for problem in send_notification(spec.notifications, notification, environment=os.environ):
        output.tell(f"warning: {problem}")
