"""An examination of everything that the tool needs: manifests, connection, rights, machine. One check, one answer, one remedy."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class CheckStatus(enum.StrEnum):
    """How a check ended."""

    PASSED = "pass"
    """Checks without complaint."""
    WARN = "warn"
    """Checks after which some commands will not work."""
    FAIL = "fail"
    """Checks after which most commands will not work."""
    SKIP = "skip"
    """Checks that could not be made."""


class CheckAnswer(NamedTuple):
    """How a check ended, what was found, and what to do about it."""

    status: CheckStatus
    message: str
    remedy: str | None = None


def passed(message: str) -> CheckAnswer:
    """A check without complaint."""
    return CheckAnswer(CheckStatus.PASSED, message)


def warned(message: str, remedy: str) -> CheckAnswer:
    """A check after which some commands will not work."""
    return CheckAnswer(CheckStatus.WARN, message, remedy)


def failed(message: str, remedy: str) -> CheckAnswer:
    """A check after which most commands will not work."""
    return CheckAnswer(CheckStatus.FAIL, message, remedy)


def skipped(message: str, remedy: str | None = None) -> CheckAnswer:
    """A check that could not be made."""
    return CheckAnswer(CheckStatus.SKIP, message, remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One check. ``id`` is kebab-case and never changes its meaning. ``remedy`` is what to do about a ``WARN`` or ``FAIL``."""

    id: str
    """Stable name of the check."""
    status: CheckStatus
    """How the check ended. A skipped check could not be made. The message has the reason."""
    message: str
    """What was found, for people."""
    remedy: str | None = None
    """What to do about it, ``None`` when there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """All checks in the order in which the tool needs what they are about."""

    version: str
    """Version of kafka-quotas."""
    cluster: str | None
    """Name of the cluster in the manifests, ``None`` when none is chosen."""
    checks: tuple[DoctorCheck, ...]
    """All checks, in the order in which the tool needs what they are about."""

    @property
    def counts(self) -> Mapping[CheckStatus, int]:
        """How many checks ended in each way."""
        return {status: sum(check.status is status for check in self.checks) for status in CheckStatus}

    @property
    def has_failed(self) -> bool:
        """Whether any check failed."""
        return any(check.status is CheckStatus.FAIL for check in self.checks)
