"""Outputs of a run that writes: its line in the audit file, its report, and one JSON document."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, notifying, output
from reconciler.cli.interrupts import INTERRUPTS
from reconciler.cli.results import Result, show
from reconciler.errors import FileAccessError, ManifestError, OutputError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.cli.writing import WritingOptions
    from reconciler.model import ApplyReport, ClusterSpec, ManifestCommit
    from reconciler.workflows import Access, AuditFile, TrustedTree


class Audit:
    """The audit file, if one is wanted, the cluster of the run, as far as that is known, and its notifications."""

    def __init__(self, write: WritingOptions, file: AuditFile | None, command: str) -> None:
        self._write = write
        self._command = command
        self._file = file
        self.spec: ClusterSpec | None = None

    def about(
        self, spec: ClusterSpec, access: Access, *, source: Callable[[], ManifestCommit], trusted: TrustedTree | None
    ) -> None:
        """What is known before the cluster is asked."""
        self.spec = spec
        if self._file is None:
            return
        from reconciler.workflows import principal

        who = None
        # Settings that cannot be used are an error of connecting, and told there.
        with contextlib.suppress(ReconcilerError):
            who = principal(spec, access, trusted=trusted)
        self._file.about(spec, source=source(), principal=who)

    def ended(self, report: ApplyReport) -> None:
        """Add the line. Raises ``FileAccessError``."""
        if self._file is not None:
            self._file.ended(report)

    def notify(self, report: ApplyReport) -> None:
        """Send the notifications of the Cluster manifest."""
        notifying.notify_of_report(self.spec, report, command=self._command)

    def notify_failure(self, error: BaseException) -> None:
        """Send those about a run that an error ended."""
        if not self._write.validate_only:
            notifying.notify_of_error(self.spec, error, command=self._command)

    def broke_off(self, error: BaseException) -> None:
        """Add the line of a run that an error ended before anything was written."""
        if self._file is None:
            return
        try:
            self._file.broke_off(error)
        except FileAccessError as broken:
            output.tell(str(broken))


@contextlib.contextmanager
def audited(write: WritingOptions, command: str, form: str = "text") -> Iterator[Audit]:
    """Audit what happens inside, also when an error ends it, and with JSON as ``form`` print the document of that, too.

    A way of calling that cannot work is not a run. Raises ``FileAccessError`` at once, before anything else is done, when no line
    could be added to the audit file.
    """
    audit = Audit(write, None, command)
    try:
        audit = _opened(write, command)
        yield audit
    except UsageError:
        raise
    except BaseException as error:
        with INTERRUPTS.held():
            audit.broke_off(error)
            if form == "json":
                _print_failure(error, audit.spec, validate_only=write.validate_only)
            audit.notify_failure(error)
        raise


def _opened(write: WritingOptions, command: str) -> Audit:
    if write.audit is None:
        return Audit(write, None, command)
    from reconciler.ports import SystemClock
    from reconciler.workflows import AuditFile

    file = AuditFile(Path(write.audit), command=command, validate_only=write.validate_only, clock=SystemClock())
    return Audit(write, file, command)


def _print_failure(error: BaseException, spec: ClusterSpec | None, *, validate_only: bool) -> None:
    """Stdout has one document however a run ends; that of bad manifests are their findings."""
    if isinstance(error, ManifestError | OutputError):
        return
    from reconciler.documents import APPLY_SUMMARY, failed_apply
    from reconciler.model import ClusterIdentity

    cluster = ClusterIdentity(name=spec.name, id=spec.cluster_id) if spec else ClusterIdentity()
    document = APPLY_SUMMARY.write(failed_apply(error, cluster=cluster, validate_only=validate_only))
    # The error itself is what matters, and is told on stderr whether or not this can be printed.
    with contextlib.suppress(OutputError):
        show(Result(document=lambda: document), "json")


def finish(
    write: WritingOptions, report: ApplyReport, audit: Audit, form: str, *, also: Callable[[], None] | None = None
) -> Result:
    """Audit, print and write the report; each is tried, whatever becomes of the others. Returns the exit code alone.

    A signal ends none of these: it would cost the only list of what was written.
    """
    with INTERRUPTS.held():
        return Result(exit=_finish(write, report, audit, form, also))


def _finish(write: WritingOptions, report: ApplyReport, audit: Audit, form: str, also: Callable[[], None] | None) -> int:
    from reconciler.documents import APPLY_REPORT
    from reconciler.files import write_whole
    from reconciler.model import ApplyResult
    from reconciler.render import apply_report_lines

    code = {
        ApplyResult.DONE: exit_codes.DONE,
        ApplyResult.NOTHING_TO_DO: exit_codes.DONE,
        ApplyResult.FAILED: exit_codes.NOT_DONE,
        ApplyResult.REFUSED: exit_codes.REFUSED,
        ApplyResult.PARTIAL: exit_codes.PARTIAL,
    }[report.result]
    if report.withheld and code == exit_codes.DONE:
        code = exit_codes.REFUSED
    result = Result(view=lambda: apply_report_lines(report), document=lambda: APPLY_REPORT.write(report))

    def to_file() -> None:
        if write.report:
            write_whole(Path(write.report), [APPLY_REPORT.text(report)])

    def to_stdout() -> None:
        show(result, form)

    for leave in (lambda: audit.ended(report), to_file, to_stdout, also, lambda: audit.notify(report)):
        failed = _left(leave, report)
        code = code or failed
    if report.message and form == "json":
        output.tell(report.message)
    return code


def _left(leave: Callable[[], None] | None, report: ApplyReport) -> int:
    """Leave one trace of the run; the exit code if that fails, which never states that less was written than was."""
    failed = exit_codes.PARTIAL if report.wrote else exit_codes.NOT_DONE
    try:
        if leave is not None:
            leave()
    except (OutputError, FileAccessError) as error:
        output.tell(str(error))
        return failed
    except Exception as error:
        if not report.wrote:
            raise
        output.tell(f"internal error: {type(error).__name__}: {error}. Please report it")
        return failed
    return exit_codes.DONE
