"""An examination of everything that the tool needs: manifests, connection, rights, machine. One check, one answer, one remedy."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class CheckStatus(enum.StrEnum):
    """How a check ended."""

    PASSED = "pass"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One check. ``id`` is kebab-case and never changes its meaning. ``remedy`` is what to do about a ``WARN`` or ``FAIL``."""

    id: str
    status: CheckStatus
    message: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """All checks in the order in which the tool needs what they are about."""

    version: str
    cluster: str | None
    checks: tuple[DoctorCheck, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many checks ended in each way."""
        return {status.value: sum(check.status is status for check in self.checks) for status in CheckStatus}

    @property
    def has_failed(self) -> bool:
        """Whether any check failed."""
        return any(check.status is CheckStatus.FAIL for check in self.checks)
