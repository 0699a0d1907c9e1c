"""Explanations as the JSON document of ``schemas/explanations.v1.schema.json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.formats import FORMAT_VERSION, Json
from reconciler.model import Explanation

SCHEMA: Final = "explanations"


def explanations_to_json(every: Sequence[Explanation]) -> dict[str, Json]:
    """The document."""
    return {"format_version": FORMAT_VERSION, "explanations": [_item(one) for one in every]}


def _item(one: Explanation) -> dict[str, Json]:
    example = one.example
    return {
        "id": one.id,
        "topic": one.topic.value,
        "severity": one.severity.value if one.severity else None,
        "adjustable": one.adjustable,
        "text": one.text,
        "example": {"bad": example.bad, "good": example.good, "live": list(example.live), "commands": example.commands}
        if example
        else None,
    }
