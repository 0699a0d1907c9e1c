"""The checks of ``doctor``: values, their document, and lines for a terminal."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.model import display_name
from reconciler.render import Block, Style, line
from reconciler.text import count_of


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
    """What to do about it, and after its first line the text to paste. ``None`` when there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """All checks in the order in which the tool needs what they are about."""

    version: str
    """Version of kafka-quotas."""
    cluster: str | None
    """Name of the cluster in the manifests, or the source of traffic. ``None`` when none is chosen."""
    checks: tuple[DoctorCheck, ...]
    """All checks, in the order in which the tool needs what they are about."""

    @property
    def counts(self) -> Mapping[CheckStatus, int]:
        """The number of checks by how they ended."""
        return {status: sum(check.status is status for check in self.checks) for status in CheckStatus}

    @property
    def has_failed(self) -> bool:
        """Whether any check failed."""
        return self.counts[CheckStatus.FAIL] > 0


def passed(name: str, message: str) -> DoctorCheck:
    """A check without complaint."""
    return DoctorCheck(id=name, status=CheckStatus.PASSED, message=message)


def warned(name: str, message: str, remedy: str) -> DoctorCheck:
    """A check after which some commands will not work."""
    return DoctorCheck(id=name, status=CheckStatus.WARN, message=message, remedy=remedy)


def failed(name: str, message: str, remedy: str) -> DoctorCheck:
    """A check after which most commands will not work."""
    return DoctorCheck(id=name, status=CheckStatus.FAIL, message=message, remedy=remedy)


def skipped(name: str, message: str, remedy: str | None = None) -> DoctorCheck:
    """A check that could not be made."""
    return DoctorCheck(id=name, status=CheckStatus.SKIP, message=message, remedy=remedy)


CHECKUP: Final = Document(
    cls=Checkup,
    name="checkup",
    title="kafka-quotas doctor",
    codec=VALUES.extended({Checkup: row("version cluster checks summary=counts")}),
)


_STYLES: Final = {
    CheckStatus.PASSED: Style.GOOD,
    CheckStatus.WARN: Style.WARN,
    CheckStatus.FAIL: Style.BAD,
    CheckStatus.SKIP: Style.FAINT,
}
_ID_COLUMNS: Final = 14


def checkup_lines(checkup: Checkup) -> Iterator[Block]:
    """The checks as lines, failures and all: support reads them from top to bottom."""
    of = "" if checkup.cluster is None else f" of {display_name(checkup.cluster)}"
    yield line((f"Checkup{of}", Style.STRONG), f", kafka-quotas {checkup.version}")
    yield line()
    for check in checkup.checks:
        hang = 6 + _ID_COLUMNS + 1
        yield line(
            (f"{check.status.value:<6}", _STYLES[check.status]), f"{check.id:<{_ID_COLUMNS}} ", str(check.message), hang=hang
        )
        if check.remedy is not None:
            advice, *text = check.remedy.splitlines()
            yield line(" " * hang, ("Remedy: ", Style.STRONG), advice, hang=hang)
            yield from (line(f"  {each}") for each in text)
    yield line()
    counts = checkup.counts
    failed, warned = count_of(counts[CheckStatus.FAIL], "check"), count_of(counts[CheckStatus.WARN], "warning")
    passed, skipped = counts[CheckStatus.PASSED], f"{counts[CheckStatus.SKIP]} skipped."
    sentence = f"{failed} failed, {warned}, {passed} passed, {skipped}"
    if not counts[CheckStatus.FAIL] and not counts[CheckStatus.WARN]:
        sentence = f"{count_of(passed, 'check')} passed, {skipped}"
    yield line((sentence, Style.STRONG))
