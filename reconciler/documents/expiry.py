"""The expiry of a value in JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.documents.reading import moment_from_json, value_from_json
from reconciler.formats import Json, moment_to_json, value_to_json
from reconciler.model import ValueExpiry


def expiry_to_json(expiry: ValueExpiry | None) -> dict[str, Json]:
    """``{expiry: {at, expired, then}}`` before the expiry, ``{expiry: {at, expired, was}}`` from then on; or nothing."""
    if expiry is None:
        return {}
    side = "was" if expiry.expired else "then"
    return {"expiry": {"at": moment_to_json(expiry.at), "expired": expiry.expired, side: value_to_json(expiry.other)}}


def expiry_from_json(document: Mapping[str, Any]) -> ValueExpiry | None:
    """The inverse. Raises ``FieldError``."""
    row = document.get("expiry")
    if row is None:
        return None
    side = "was" if row["expired"] else "then"
    other = value_from_json(row.get(side), f"expiry.{side}")
    return ValueExpiry(at=moment_from_json(row["at"], "expiry.at"), expired=row["expired"], other=other)
