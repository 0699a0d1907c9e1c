"""Notifications of a cluster, and the webhooks that get them."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.entity import Entity
from reconciler.model.finding import Span
from reconciler.model.state import ClusterIdentity


class NotificationEvent(enum.StrEnum):
    """Why a notification is sent. ``RESOLVED`` follows ``DRIFT`` or ``FAILED`` once the cluster is in sync again."""

    DRIFT = "drift"
    APPLIED = "applied"
    FAILED = "failed"
    RESOLVED = "resolved"


class WebhookFormat(enum.StrEnum):
    """The body of the request."""

    JSON = "json"
    SLACK = "slack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One webhook of a Cluster manifest. Its address is a secret, so the manifest names where it is: one of the two."""

    name: str
    format: WebhookFormat
    variable: str | None = None
    """The environment variable with the address."""
    file: str | None = None
    """The file with the address."""
    events: frozenset[NotificationEvent] = frozenset(NotificationEvent)
    ca_file: str | None = None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One event. ``summary`` is one sentence for people, which may quote names."""

    event: NotificationEvent
    command: str
    at: datetime.datetime
    cluster: ClusterIdentity
    summary: str
    reason: str | None = None
    """The ``failure_reason`` of the error tree."""
    digest: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    entities: tuple[Entity, ...] = ()
    omitted: int = 0
    """Entities that are not among ``entities``."""
