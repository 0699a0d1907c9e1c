"""The manifest FindingsBaseline: one entry for each finding that is known."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Final

from reconciler.formats import TEXT, ChoiceShape, ListShape, ManifestShape, NumberShape, RecordShape, TextShape
from reconciler.manifest import DAY, Collector, FindingsBaseline, KnownFinding
from reconciler.model import Severity
from reconciler.yaml import YamlMapping

_REASON: Final = TextShape("Why the findings may stay. Validation asks for a reason that is empty.", min_length=0)
_SEVERITIES: Final = (Severity.WARNING.value, Severity.INFO.value)


def _baseline(
    root: YamlMapping,
    out: Collector,
    *,
    name: str | None = None,
    until: datetime.date | None = None,
    reason: str = "",
    findings: tuple[KnownFinding, ...] = (),
) -> FindingsBaseline:
    """Build a baseline. Entries without a day or a reason of their own get those of the document."""
    del name
    last = until or datetime.date.min
    entries = (
        replace(each, until=each.until or last, reason=reason if each.reason is None else each.reason) for each in findings
    )
    spec = root.items.get("spec")
    place = out.key_span(spec, "reason") if isinstance(spec, YamlMapping) and "reason" in spec.items else None
    return FindingsBaseline(
        file=out.file, span=out.span(root), until=until, reason=reason, reason_span=place, findings=tuple(entries)
    )


_ENTRY: Final = RecordShape(
    KnownFinding,
    "A finding that is as before while it has these facts, and is not worse.",
    {
        "id": TextShape("The id of the rule.", examples=["percentage-small"]),
        "severity": ChoiceShape({each: Severity(each) for each in _SEVERITIES}, "The severity.", default="warning"),
        "subject": ListShape(TEXT, "The facts: entity, key, and what else the message names or counts, in order."),
        "count": NumberShape("How many equal findings.", type="integer", minimum=1, default=1),
        "until": replace(DAY, about="The last day of this entry, as YYYY-MM-DD."),
        "reason": _REASON,
    },
    required=("id", "subject"),
)
FINDINGS_BASELINE: Final = ManifestShape(
    "FindingsBaseline",
    "Findings that are known and may stay for now. validate --write-baseline writes it.",
    metadata=RecordShape(None, "Words for people.", {"name": TextShape("A name for people.")}),
    spec=RecordShape(
        None,
        "The known findings.",
        {
            "until": replace(DAY, about="The last day, as YYYY-MM-DD, of entries without a day of their own."),
            "reason": _REASON,
            "findings": ListShape(_ENTRY, "One entry for each finding. Errors and guards cannot be listed."),
        },
        required=("until", "reason", "findings"),
    ),
    make=_baseline,
)
