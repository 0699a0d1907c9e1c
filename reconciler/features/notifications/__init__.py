"""Notifications of drift, of writes and of failures, sent to webhooks."""

from __future__ import annotations

from typing import Final

NOTIFIERS: Final = ("reconciler.features.notifications.sending:notify",)
