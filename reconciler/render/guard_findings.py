"""Guards in the form of findings, for the formats that know nothing else."""

from __future__ import annotations

import re
from typing import Final

from reconciler.model import Finding, GuardResult, GuardStatus, Plan, Severity, Span

GUARD_PREFIX: Final = "guard/"
"""What comes before a guard's id where ids of findings and guards meet."""

_PLACE: Final = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]*):(?P<column>[1-9][0-9]*)", re.DOTALL)
_SEVERITIES: Final = {GuardStatus.NEEDS_ACCEPTANCE: Severity.ERROR, GuardStatus.ACCEPTED: Severity.INFO}


def guard_findings(plan: Plan) -> tuple[Finding, ...]:
    """An error for every guard that needs acceptance, an info for every accepted one; those that passed are silent."""
    return tuple(
        Finding(
            id=f"{GUARD_PREFIX}{guard.id}",
            severity=_SEVERITIES[guard.status],
            message=guard_sentence(guard),
            span=_place(guard.set_in),
        )
        for guard in plan.guards
        if guard.status in _SEVERITIES
    )


def guard_sentence(guard: GuardResult) -> str:
    """The guard's message; for one that needs acceptance always with measured value, limit, its place and the flag."""
    if guard.status is not GuardStatus.NEEDS_ACCEPTANCE or acceptance(guard) in guard.message:
        return guard.message
    measured = f"measured {guard.measured}, limit {guard.limit}, set in: {guard.set_in}"
    return f"{guard.message} ({measured}); accept with {acceptance(guard)}"


def acceptance(guard: GuardResult) -> str:
    """What to type: ``--accept default-entity``."""
    return f"--accept {guard.id}"


def _place(set_in: str) -> Span | None:
    match = _PLACE.fullmatch(set_in)
    return Span(file=match["file"], line=int(match["line"]), column=int(match["column"])) if match else None
