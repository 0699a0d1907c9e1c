"""Rules: the kinds of findings there are, with their severities and what ``explain`` says about them."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.finding import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. ``adjustable``: a repository may give it another severity, or switch it off."""

    id: str
    severity: Severity
    explanation: str
    adjustable: bool = False
