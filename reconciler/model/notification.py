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
