"""Whether rows of a producer keep to the canonical traffic schema: one check for each thing that can be wrong."""

from __future__ import annotations

import datetime
import enum
from collections import Counter
from dataclasses import dataclass

from reconciler.model.finding import Severity


class CheckState(enum.StrEnum):
    """The result of one check."""

    PASSED = "pass"
    WARN = "warn"
    """The backtest reads the rows, and they may not mean what their producer meant."""
    FAIL = "fail"
    """The backtest refuses the rows, or leaves them out."""
    SKIPPED = "skipped"
    """Not checked, because of another result or because no row is concerned."""

    @property
    def severity(self) -> Severity | None:
        """How bad it is as a finding."""
        return {CheckState.FAIL: Severity.ERROR, CheckState.WARN: Severity.WARNING}.get(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractCheck:
    """One check. ``rows``: those that violate it. ``example``: a name or row of the producer. Escape it in outputs."""

    id: str
    state: CheckState
    message: str
    rows: int = 0
    example: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReport:
    """All checks of one source, in a fixed order. ``start`` and ``end``: of the rows with a usable time."""

    source: str
    schema_version: str
    rows: int
    start: datetime.datetime | None
    end: datetime.datetime | None
    checks: tuple[ContractCheck, ...]

    def count(self, state: CheckState) -> int:
        """How many checks have this result."""
        return Counter(check.state for check in self.checks)[state]

    def fails(self, limit: Severity) -> bool:
        """Whether a check is as bad as ``limit``, or worse."""
        return any(severity.at_least(limit) for check in self.checks if (severity := check.state.severity) is not None)
