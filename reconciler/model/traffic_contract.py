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
    """Checks without a violation."""
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
    """The name of the check."""
    state: CheckState
    """The result. A failed check means that the backtest refuses the rows or leaves them out."""
    message: str
    """The result as a sentence."""
    rows: int = 0
    """How many rows violate it."""
    example: str | None = None
    """One of these rows, a value of it, or a file, as the producer wrote it. ``None`` when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReport:
    """All checks of one source, in a fixed order. ``start`` and ``end``: of the rows with a usable time."""

    source: str
    """The files, addresses or tables."""
    schema_version: str
    """Version of the canonical traffic schema."""
    rows: int
    """How many rows were read. 0 when the columns cannot be read."""
    start: datetime.datetime | None
    """The first time of a row. ``None`` when no row has a usable time."""
    end: datetime.datetime | None
    """The last time of a row."""
    checks: tuple[ContractCheck, ...]
    """All checks, in a fixed order."""

    def count(self, state: CheckState) -> int:
        """How many checks have this result."""
        return Counter(check.state for check in self.checks)[state]

    def fails(self, limit: Severity) -> bool:
        """Whether a check is as bad as ``limit``, or worse."""
        return any(severity.at_least(limit) for check in self.checks if (severity := check.state.severity) is not None)
