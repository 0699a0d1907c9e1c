"""What notifications add: the function that sends them, where a Cluster manifest names webhooks."""

from __future__ import annotations

from typing import Final

NOTIFIERS: Final = ("reconciler.features.notifications.sending:notify",)
