"""A notification as a chat message in Slack's form, which Mattermost and Rocket.Chat read too.

Blocks are plain text, in which nothing is markup. The text beside them is shown in pop-ups. There ``&``, ``<`` and ``>`` begin
mentions and links, so they are escaped. Source: "Formatting text for app surfaces" of Slack's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.formats import Json
from reconciler.model import Notification, NotificationEvent, display_name, escaped
from reconciler.text import count_of

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
