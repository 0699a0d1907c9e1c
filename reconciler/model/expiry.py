"""Values of manifests that expire: when, and the value on the other side of that moment."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueExpiry:
    """The expiry of one value, seen from one moment: before it (``expired`` false) or from then on. ``at``: in UTC."""

    at: datetime.datetime
    """The moment, in UTC."""
    expired: bool
    """Whether that moment was over when the manifests were read."""
    other: float | None = None
    """For each broker: before the expiry the value that follows, after it the value that expired. ``None``: no value there."""
