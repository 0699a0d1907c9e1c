"""Steps that ``apply``, ``revert`` and ``alter`` share before they write: options, the shown plan, and the question."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from reconciler.cli import exit_codes, output
from reconciler.cli.declaration import option
from reconciler.cli.option_groups import ACCEPT, step_down
from reconciler.cli.results import Result, show
from reconciler.errors import FileAccessError, ManifestError, NotConfirmedError, OutputError, UsageError

if TYPE_CHECKING:
    from reconciler.apply import ApplySettings, StepDown
    from reconciler.cli.output import LiveProgress
    from reconciler.cli.run_context import ContextLookup
    from reconciler.model import ApplyReport, ClusterSpec, ManifestCommit, Plan
    from reconciler.ports import QuotaCluster
    from reconciler.workflows import Access, AuditFile, TrustedTree

_LONGEST_WAIT: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingOptions:
    """How a write is approved, and what is left of it in files."""

    expect_digest: str | None = option(
        "--expect-digest", section="Safety", metavar="DIGEST", help="refuse unless the plan has this digest"
    )
    accept: tuple[str, ...] = ACCEPT
    auto_approve: bool = option("--auto-approve", section="Safety", help="do not ask (needed without a terminal)")
    validate_only: bool = option(
        "--validate-only", section="Safety", help="let the cluster validate everything, and write nothing"
    )
    report: str | None = option(
        "--report", section="Output", metavar="FILE", help="write the report as JSON to this file, for revert"
    )
    audit: str | None = option(
        "--audit",
        section="Output",
        metavar="FILE",
        help="add one line of JSON to this file: user, time, cluster, and how the run ended",
    )

    def settings(self) -> ApplySettings:
        """Return how the run writes. A signal ends it with a report."""
        from reconciler.apply import ApplySettings

        return ApplySettings(validate_only=self.validate_only, stop_wanted=INTERRUPTS.stop_wanted, breakable=INTERRUPTS.breakable)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWritingOptions(WritingOptions):
    """Also how a write of many changes goes on: in steps."""

    step_down: float | None = step_down("lower limits in steps of at most this factor, such as 2, and verify each step")
    step_wait: float | None = option(
        "--step-wait", section="Steps", metavar="SECONDS", help="wait between two steps [default: 11]"
    )

    def steps(self) -> StepDown | None:
        """Return the steps in which limits go down; ``None``: at once. Raises ``UsageError``."""
        from reconciler.apply import WINDOW_SECONDS, StepDown

        if self.step_down is None:
            if self.step_wait is not None:
                raise UsageError("--step-wait needs --step-down FACTOR")
            return None
        wait = WINDOW_SECONDS if self.step_wait is None else self.step_wait
        if not 0 <= wait <= _LONGEST_WAIT:
            raise UsageError(f"--step-wait takes seconds from 0 to {_LONGEST_WAIT:g}, not {wait:g}")
        return StepDown(factor=self.step_down, wait_seconds=wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approver:
    """Shows plans to the person at the terminal, and asks. With ``as_json``, stdout belongs to the report."""

    write: WritingOptions
    as_json: bool
    progress: LiveProgress

    def show_findings(self, plan: Plan) -> None:
        """Print the findings of a plan as ``plan`` does, above the plan and the question."""
        if plan.findings:
            with self.progress.silent():
                output.print_findings(plan.findings)

    def preview(self, plan: Plan) -> None:
        """Show a plan that is not going to be written."""
        with self.progress.silent():
            self._show(plan)

    def show_refused(self, plan: Plan) -> None:
        """Show a plan that is refused before a person was asked about it, where ``confirm`` would have shown it."""
        if not self._is_silent:
            self.preview(plan)

    def confirm(self, plan: Plan) -> bool:
        """Show the plan and ask; from a yes on, signals are noted. Raises ``NotConfirmedError`` without a terminal to ask at."""
        with self.progress.silent():
            if not self._is_silent:
                self._show(plan)
            if not self.write.auto_approve and not _is_answered_yes():
                return False
        INTERRUPTS.hold()
        return True

    @property
    def _is_silent(self) -> bool:
        return output.is_quiet() and self.write.auto_approve

    def _show(self, plan: Plan) -> None:
        from reconciler.render import MANY_CHANGES, plan_view

        output.print_lines(plan_view(plan, most_changes=MANY_CHANGES).lines, sys.stderr if self.as_json else sys.stdout)


def _is_answered_yes() -> bool:
    """Ask the person at the terminal. Raises ``NotConfirmedError`` without one."""
    if os.environ.get("CI") or not sys.stdin.isatty():
        raise NotConfirmedError("this run has no terminal to ask at. Review the plan and pass --auto-approve")
    print("Apply these changes? Only 'yes' is accepted: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


@contextlib.contextmanager
def given_back(cluster: QuotaCluster) -> Iterator[None]:
    """Close the connection at the end; an error while that goes on must not cost the report of what was written."""
    try:
        yield
    except BaseException:
        cluster.close()
        raise
    with contextlib.suppress(Exception):  # whatever breaks, there is nothing to give back any more
        cluster.close()


_NUMBERS: Final = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None  # not on Windows
)


class Interrupts:
    """The signals to this process. Handlers are set in the main thread only; a signal that is ignored stays ignored."""

    def __init__(self) -> None:
        self._holds = 0
        self._noted = False
        self._breaks = False
        self._before: dict[signal.Signals, Any] = {}

    def hold(self) -> None:
        """Note signals from now on, until the process ends."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._holds += 1
        if self._holds > 1:
            return
        for number in _NUMBERS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Note signals inside."""
        self.hold()
        try:
            yield
        finally:
            self._release()

    def stop_wanted(self) -> bool:
        """True once a signal was noted."""
        return self._noted

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """Let the first signal, and one that was noted before, raise ``KeyboardInterrupt`` inside. For the main thread."""
        self._breaks = True
        try:
            if self._noted:
                raise KeyboardInterrupt
            yield
        finally:
            self._breaks = False

    def _release(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._holds -= 1
        if self._holds == 0:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._noted = True
        if self._breaks:
            self._breaks = False
            raise KeyboardInterrupt


INTERRUPTS: Final = Interrupts()
"""Those of this process, which has one handler for each signal."""


class Audit:
    """The audit file, if one is wanted, and the cluster of the run, as far as that is known."""

    def __init__(self) -> None:
        self.file: AuditFile | None = None
        self.lookup: ContextLookup | None = None
        self.spec: ClusterSpec | None = None

    def about(
        self, spec: ClusterSpec, access: Access, *, source: Callable[[], ManifestCommit], trusted: TrustedTree | None
    ) -> None:
        """Return the facts that are known before the cluster is asked."""
        self.spec = spec
        if self.file is None:
            return
        from reconciler.workflows import known_principal

        self.file.about(spec, source=source(), principal=known_principal(spec, access, trusted=trusted))

    def with_context(self, report: ApplyReport) -> ApplyReport:
        """The report with why the run was made, in a CI job."""
        if self.lookup is None:
            return report
        facts = dataclasses.replace(report.facts, context=self.lookup.result())
        return dataclasses.replace(report, facts=facts)

    def ended(self, report: ApplyReport) -> None:
        """Add the line. Raises ``FileAccessError``."""
        if self.file is not None:
            self.file.ended(report)

    def broke_off(self, error: BaseException) -> None:
        """Add the line of a run that an error ended before anything was written."""
        if self.file is None:
            return
        try:
            self.file.broke_off(error, context=self.lookup.result() if self.lookup is not None else None)
        except FileAccessError as broken:
            output.tell(str(broken))


@contextlib.contextmanager
def audited(write: WritingOptions, command: str, form: str = "text") -> Iterator[Audit]:
    """Audit what happens inside, also when an error ends it, and with JSON as ``form`` print the document of that, too.

    A way of calling that cannot work is not a run. Raises ``FileAccessError`` at once, before anything else is done, when no line
    could be added to the audit file.
    """
    audit = Audit()
    try:
        if write.audit is not None:
            from reconciler.ports import SystemClock
            from reconciler.workflows import AuditFile

            clock = SystemClock()
            audit.file = AuditFile(Path(write.audit), command=command, validate_only=write.validate_only, clock=clock)
        if os.environ.get("CI") and (write.audit or write.report or form == "json"):
            from reconciler.cli.run_context import ContextLookup

            audit.lookup = ContextLookup()
        yield audit
    except UsageError:
        raise
    except BaseException as error:
        with INTERRUPTS.held():
            audit.broke_off(error)
            if form == "json":
                _print_failure(error, audit.spec, validate_only=write.validate_only)
        raise


def _print_failure(error: BaseException, spec: ClusterSpec | None, *, validate_only: bool) -> None:
    """Stdout has one document however a run ends; that of bad manifests are their findings."""
    if isinstance(error, ManifestError | OutputError):
        return
    from reconciler.documents import APPLY_REPORT, failed_apply
    from reconciler.model import ClusterIdentity

    cluster = ClusterIdentity(name=spec.name, id=spec.cluster_id) if spec else ClusterIdentity()
    document = APPLY_REPORT.write(failed_apply(error, cluster=cluster, validate_only=validate_only))
    # The error itself is what matters. It stands on stderr whether or not this can be printed.
    with contextlib.suppress(OutputError):
        show(Result(document=lambda: document), "json")


@INTERRUPTS.held()
def finish(
    write: WritingOptions,
    report: ApplyReport,
    audit: Audit,
    form: str,
    *,
    also: Callable[[], None] | None = None,
    cluster: Callable[[], tuple[str, ...]] = tuple,
) -> Result:
    """Audit, print and write the report; each is tried, whatever becomes of the others. Returns the exit code alone.

    ``cluster``: gives the words of a command that lead to it, for the command that takes the run back.

    A signal ends none of these: it would cost the only list of what was written.
    """
    from reconciler import documents
    from reconciler.files import write_whole
    from reconciler.model import ApplyResult
    from reconciler.render import apply_report_lines

    if audit.lookup is not None:
        report = audit.with_context(report)
    code = {
        ApplyResult.DONE: exit_codes.DONE,
        ApplyResult.NOTHING_TO_DO: exit_codes.DONE,
        ApplyResult.FAILED: exit_codes.NOT_DONE,
        ApplyResult.REFUSED: exit_codes.REFUSED,
        ApplyResult.PARTIAL: exit_codes.PARTIAL,
    }[report.result]
    file = write.report
    undo = (file, *cluster()) if file and report.wrote else ()
    result = Result(view=lambda: apply_report_lines(report, undo=undo), document=lambda: documents.APPLY_REPORT.write(report))
    to_file = (lambda: write_whole(Path(file), [documents.APPLY_REPORT.text(report)])) if file else None
    line = (lambda: audit.ended(report)) if audit.file is not None else None
    traces = (line, to_file, lambda: show(result, form), also)
    for leave in filter(None, traces):
        failed = _left(leave, report)
        code = code or failed
    if report.message and form == "json":
        output.tell(report.message)
    return Result(exit=code)


def _left(leave: Callable[[], object], report: ApplyReport) -> int:
    """Leave one trace of the run; the exit code if that fails, which never states that less was written than was."""
    failed = exit_codes.PARTIAL if report.wrote else exit_codes.NOT_DONE
    try:
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
