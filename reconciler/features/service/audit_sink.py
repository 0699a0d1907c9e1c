"""What a write leaves behind: a line of the audit file, and the report of the last one."""

from __future__ import annotations

from pathlib import Path

from reconciler.documents import APPLY_REPORT
from reconciler.files import write_whole
from reconciler.model import ApplyReport, Plan
from reconciler.ports import Clock
from reconciler.workflows import Access, AuditFile, Intent, known_principal


class AuditSink:
    """Both files are optional. ``report`` has always the last run that wrote something; ``revert`` reads it."""

    def __init__(self, *, audit: Path | None, report: Path | None, access: Access, clock: Clock) -> None:
        self._audit_path = audit
        self._report_path = report
        self._access = access
        self._clock = clock
        self._audit: AuditFile | None = None
        self._refused: tuple[str, str, str | None] | None = None

    def begin(self, intent: Intent, plan: Plan) -> None:
        """Begin a line of the audit file. Raises ``FileAccessError`` if none can be added, and then nothing is written."""
        self._audit = None
        if self._audit_path is None:
            return
        self._audit = AuditFile(self._audit_path, command="run", validate_only=False, clock=self._clock)
        who = known_principal(intent.spec, self._access, trusted=intent.trusted)
        self._audit.about(intent.spec, source=plan.source, principal=who)

    def ended(self, report: ApplyReport) -> None:
        """End the line and write the report. A refusal that repeats is one line. Raises ``FileAccessError``."""
        summary = (report.digest, report.result.value, report.failure_reason)
        if self._audit is not None and (report.wrote or summary != self._refused):
            self._audit.ended(report)
        self._refused = summary
        if self._report_path is not None and report.wrote:
            write_whole(self._report_path, [APPLY_REPORT.text(report)])
