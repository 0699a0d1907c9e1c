"""A notification: what happened to a cluster, as a document and as a chat message.

Chat messages have Slack's form, which Mattermost and Rocket.Chat read too. Their blocks are plain text. In the text beside them
``&``, ``<`` and ``>`` begin mentions and links, so they are escaped. Source: "Formatting text for app surfaces" of Slack.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconciler.documents import Document
from reconciler.errors import ReconcilerError
from reconciler.formats import Json
from reconciler.model import ApplyReport, ApplyResult, ChangeStatus, ClusterIdentity, Drift, Entity, display_name, escaped
from reconciler.text import count_of

MOST_ENTITIES: Final = 20
_LONGEST: Final = 2000


class NotificationEvent(enum.StrEnum):
    """Why a notification is sent. ``RESOLVED`` follows ``DRIFT`` or ``FAILED`` once the cluster is in sync again."""

    DRIFT = "drift"
    APPLIED = "applied"
    FAILED = "failed"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One event. ``summary`` is one sentence for people, which may quote names."""

    event: NotificationEvent
    """Drift: the cluster differs from its manifests. applied: changes were written. failed: nothing or not everything was
    written, or the cluster could not be compared. resolved: after drift or failed, the cluster is in sync again (run only).
    """
    command: str
    """The command that found or did it: apply, alter, revert, drift or run."""
    at: datetime.datetime
    """The moment of the event, in UTC."""
    cluster: ClusterIdentity
    """The cluster. A field is ``None`` when its value is not known."""
    summary: str
    """One sentence for people. Control characters of names are escaped in no document, so escape it before you show it."""
    reason: str | None = None
    """The ``failure_reason`` of the error tree."""
    digest: str | None = None
    """The digest of the plan that was written or refused."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Numbers of entities by class of drift or by status of a write."""
    entities: tuple[Entity, ...] = ()
    """The first entities. Empty for run."""
    omitted: int = 0
    """Entities that are not among ``entities``."""


NOTIFICATION: Final = Document(cls=Notification, name="notification", title="kafka-quotas notification")


def notification_of_report(report: ApplyReport, *, command: str, at: datetime.datetime) -> Notification | None:
    """Return a notification of what a write did; ``None`` when nothing was written and nothing failed."""
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


_SIGNS: Final = {
    NotificationEvent.DRIFT: "⚠️",
    NotificationEvent.APPLIED: "✅",
    NotificationEvent.FAILED: "❌",
    NotificationEvent.RESOLVED: "✅",
}
_TITLES: Final = {
    NotificationEvent.DRIFT: "drift",
    NotificationEvent.APPLIED: "applied",
    NotificationEvent.FAILED: "failed",
    NotificationEvent.RESOLVED: "in sync again",
}
_MOST_HEADER: Final = 150
_MOST_TEXT: Final = 2900
"""Characters that Slack takes of a header (150) and of a section (3000)."""


def render_chat_message(notification: Notification) -> dict[str, Json]:
    """``{"text": ..., "blocks": [...]}``."""
    name = display_name(notification.cluster.name or "") or "a cluster"
    title = f"{_SIGNS[notification.event]} Kafka quotas of {name}: {_TITLES[notification.event]}"
    summary = escaped(notification.summary)
    lines = "\n".join([summary, *_details(notification)])
    return {
        "text": _cut(_escaped_markup(f"{title}. {summary}"), _MOST_TEXT),
        "blocks": [
            {"type": "header", "text": _plain(title, _MOST_HEADER)},
            {"type": "section", "text": _plain(lines, _MOST_TEXT)},
            {"type": "context", "elements": [_plain(_foot(notification), _MOST_TEXT)]},
        ],
    }


def _details(notification: Notification) -> Iterator[str]:
    yield from (f"• {escaped(str(entity))}" for entity in notification.entities)
    if notification.omitted:
        yield f"and {count_of(notification.omitted, 'more entity', 'more entities')}"


def _foot(notification: Notification) -> str:
    parts = [f"kafka-quotas {notification.command}", f"{notification.at:%Y-%m-%d %H:%M:%S} UTC"]
    parts += [notification.reason] if notification.reason else []
    return " · ".join(escaped(part) for part in parts)


def _plain(text: str, most: int) -> dict[str, Json]:
    return {"type": "plain_text", "text": _cut(text, most), "emoji": False}


def _escaped_markup(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
