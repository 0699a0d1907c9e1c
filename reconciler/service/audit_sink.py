"""What the service's writes leave behind: a line in the audit file, and the report of the last one."""

from __future__ import annotations

import contextlib
from pathlib import Path

from reconciler.documents import apply_report_to_json
from reconciler.errors import ReconcilerError
from reconciler.files import write_whole
from reconciler.formats import document_text
from reconciler.model import ApplyReport, Plan
from reconciler.ports import Clock
from reconciler.workflows import Access, AuditFile, Intent, principal


class AuditSink:
    """Both files are optional. ``report`` always holds the last run that wrote something; ``revert`` reads it."""

    def __init__(self, *, audit: Path | None, report: Path | None, access: Access, clock: Clock) -> None:
        self._audit_path = audit
        self._report_path = report
        self._access = access
        self._clock = clock
        self._audit: AuditFile | None = None
        self._told: tuple[str, str, str | None] | None = None

    def begin(self, intent: Intent, plan: Plan) -> None:
        """Before a write. Raises ``FileAccessError`` when no line could be added."""
        self._audit = None
        if self._audit_path is None:
            return
        self._audit = AuditFile(self._audit_path, command="run", validate_only=False, clock=self._clock)
        who = None
        # Settings that cannot be used were an error of connecting, and told there.
        with contextlib.suppress(ReconcilerError):
            who = principal(intent.spec, self._access, trusted=intent.trusted)
        self._audit.about(intent.spec, source=plan.source, principal=who)

    def ended(self, report: ApplyReport) -> None:
        """After it. The same refusal, over and over, is one line. Raises ``FileAccessError``."""
        told = (report.digest, report.result.value, report.failure_reason)
        if self._audit is not None and (report.wrote or told != self._told):
            self._audit.ended(report)
        self._told = told
        if self._report_path is not None and report.wrote:
            write_whole(self._report_path, [document_text(apply_report_to_json(report))])
