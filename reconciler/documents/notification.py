"""The document that a webhook is sent: ``schemas/notification.v1.schema.json``."""

from __future__ import annotations

from reconciler.formats import FORMAT_VERSION, Json, cluster_to_json, entity_to_json, moment_to_json
from reconciler.model import Notification


def notification_to_json(notification: Notification) -> dict[str, Json]:
    """The whole notification; names are raw, as in every document."""
    return {
        "format_version": FORMAT_VERSION,
        "event": notification.event.value,
        "command": notification.command,
        "at": moment_to_json(notification.at),
        "cluster": cluster_to_json(notification.cluster),
        "summary": str.__str__(notification.summary),
        "reason": notification.reason,
        "digest": notification.digest,
        "counts": dict(notification.counts),
        "entities": [entity_to_json(entity) for entity in notification.entities],
        "omitted": notification.omitted,
    }
