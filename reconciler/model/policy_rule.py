"""Policies of a repository: conditions over the plan that a team writes itself."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from reconciler.model.finding import Span

POLICY_PREFIX: Final = "policy:"
"""Before the name of a policy in the id of its guard."""


class PolicySeverity(enum.StrEnum):
    """What a violated policy does."""

    WARNING = "warning"
    REFUSE = "refuse"


class PolicySubject(enum.StrEnum):
    """What a policy is evaluated for."""

    PLAN = "plan"
    CHANGE = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyExpression:
    """An expression in CEL. ``lines``: where each of its lines begins in the file. Empty where the lines were folded."""

    text: str
    span: Span
    lines: tuple[Span, ...] = ()

    def place(self, line: int, column: int) -> Span:
        """A place in the expression as a place in its file. The expression itself where that is not known."""
        if not 0 < line <= len(self.lines) or column < 1:
            return self.span
        start = self.lines[line - 1]
        return Span(file=start.file, line=start.line, column=start.column + column - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPolicy:
    """One policy. It is violated where ``when`` is true (or absent) and ``require`` is not."""

    name: str
    description: str
    """Empty where none is given."""
    severity: PolicySeverity
    subject: PolicySubject
    require: PolicyExpression
    when: PolicyExpression | None = None
    message: str | None = None
    acceptable: bool = False
    """Whether a violation can be accepted by name, as a guard can."""
    span: Span

    @property
    def guard_id(self) -> str:
        """The id of its guard."""
        return f"{POLICY_PREFIX}{self.name}"

    @property
    def expressions(self) -> tuple[PolicyExpression, ...]:
        """Those that are written."""
        return (self.require,) if self.when is None else (self.when, self.require)
