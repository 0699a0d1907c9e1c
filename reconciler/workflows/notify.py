"""Send notifications to the webhooks of a cluster. A webhook that fails is a warning, and nothing else."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from reconciler.documents import NOTIFICATION
from reconciler.errors import FileAccessError, ReconcilerError, UsageError
from reconciler.integrations import post_to_webhook
from reconciler.model import (
    ApplyReport,
    ApplyResult,
    ChangeStatus,
    ClusterIdentity,
    Drift,
    Entity,
    Notification,
    NotificationEvent,
    Webhook,
    WebhookFormat,
    display_name,
)
from reconciler.render import render_chat_message
from reconciler.text import count_of

MOST_ENTITIES: Final = 20
_LONGEST: Final = 2000
_MOST_ADDRESS: Final = 8192


def send_notification(
    webhooks: Sequence[Webhook], notification: Notification, *, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Send it to each webhook that wants the event. The problems, one sentence each, without any address."""
    problems = []
    for webhook in webhooks:
        if notification.event not in webhook.events:
            continue
        try:
            problem = post_to_webhook(
                _address(webhook, environment),
                _body(webhook, notification),
                ca_file=Path(webhook.ca_file) if webhook.ca_file else None,
            )
        except ReconcilerError as error:
            problem = str(error)
        if problem is not None:
            problems.append(f"webhook {display_name(webhook.name)} was not notified of {notification.event.value}: {problem}")
    return tuple(problems)


def _body(webhook: Webhook, notification: Notification) -> bytes:
    document = render_chat_message(notification) if webhook.format is WebhookFormat.SLACK else NOTIFICATION.write(notification)
    return json.dumps(document, ensure_ascii=True, allow_nan=False).encode()


def _address(webhook: Webhook, environment: Mapping[str, str]) -> str:
    if webhook.variable is not None:
        address = environment.get(webhook.variable, "").strip()
        if not address:
            raise UsageError(f"the environment variable {webhook.variable} with its address is not set")
        return address
    try:
        with Path(webhook.file or "").open(encoding="utf-8") as file:
            address = file.read(_MOST_ADDRESS).strip()
    except OSError as error:
        raise FileAccessError(f"cannot read the file with its address: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileAccessError("the file with its address is not UTF-8 text") from None
    if not address:
        raise UsageError("the file with its address is empty")
    return address


def notification_of_report(report: ApplyReport, *, command: str, at: datetime.datetime) -> Notification | None:
    """What a write did; ``None`` when nothing was written and nothing failed."""
    if report.validate_only or (report.result is ApplyResult.NOTHING_TO_DO and not report.withheld):
        return None
    counts = {status.value: report.count(status) for status in ChangeStatus if report.count(status)}
    written = count_of(report.count(ChangeStatus.APPLIED), "entity", "entities")
    if report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO):
        event = NotificationEvent.APPLIED
        summary = f"{command} wrote {written}"
        if report.withheld:
            event = NotificationEvent.FAILED
            summary += f" and withheld the changes of {count_of(len(report.withheld), 'owner')}"
            counts["withheld_owners"] = len(report.withheld)
    else:
        event = NotificationEvent.FAILED
        nothing = "nothing was written" if not report.wrote else f"{written} written, the rest is not"
        summary = f"{command} ended {report.result.value}, {nothing}: {(report.message or 'see its report').rstrip('.')}"
    shown, omitted = _first(tuple(outcome.change.entity for outcome in report.outcomes))
    return Notification(
        event=event,
        command=command,
        at=at,
        cluster=report.cluster,
        summary=_sentence(summary),
        reason=report.failure_reason,
        digest=report.digest or None,
        counts=counts,
        entities=shown,
        omitted=omitted,
    )


def notification_of_drift(drift: Drift, *, at: datetime.datetime) -> Notification | None:
    """The differences of ``drift``; ``None`` without any."""
    if not drift.differs:
        return None
    counts = {name.value: count for name, count in drift.counts.items() if count and name.is_difference}
    entities = tuple(entity.entity for entity in drift.entities if entity.drift.is_difference)
    shown, omitted = _first(entities)
    classes = ", ".join(f"{count} {name}" for name, count in counts.items())
    count = count_of(len(entities), "entity", "entities")
    return Notification(
        event=NotificationEvent.DRIFT,
        command="drift",
        at=at,
        cluster=drift.cluster,
        summary=_sentence(f"The cluster differs from its manifests in {count} ({classes})"),
        counts=counts,
        entities=shown,
        omitted=omitted,
    )


def notification_of_error(error: Exception, *, command: str, cluster: ClusterIdentity, at: datetime.datetime) -> Notification:
    """A run that ended before it had a result."""
    reason = error.failure_reason if isinstance(error, ReconcilerError) else "internal"
    return Notification(
        event=NotificationEvent.FAILED,
        command=command,
        at=at,
        cluster=cluster,
        summary=_sentence(f"{command} failed: {str(error).rstrip('.')}"),
        reason=reason,
    )


def _first(entities: tuple[Entity, ...]) -> tuple[tuple[Entity, ...], int]:
    return entities[:MOST_ENTITIES], max(0, len(entities) - MOST_ENTITIES)


def _sentence(text: str) -> str:
    one_line = " ".join(text.split())
    return f"{one_line}." if len(one_line) <= _LONGEST else f"{one_line[:_LONGEST]}…"
