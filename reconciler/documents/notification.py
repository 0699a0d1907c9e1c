"""The document that a webhook is sent."""

from __future__ import annotations

from typing import Final

from reconciler.documents.document import Document
from reconciler.model import Notification

NOTIFICATION: Final = Document(cls=Notification, name="notification", title="kafka-quotas notification")
