"""What ``apply`` and ``revert`` share: options, the question, the report, and the audit file."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.errors import FileAccessError, ManifestError, NotConfirmedError, OutputError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.apply.executor import ApplySettings
    from reconciler.apply.steps import StepDown
    from reconciler.cli.progress import PatientProgress
    from reconciler.model.cluster import ClusterSpec
    from reconciler.model.plan import Plan, Source
    from reconciler.model.report import ApplyReport
    from reconciler.ports import QuotaCluster
    from reconciler.workflows.audit import AuditFile
    from reconciler.workflows.trusted import TrustedTree

_LONGEST_WAIT: Final = 86_400.0


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """How a write is approved, and what is left of it in files."""
    parser.add_argument("--expect-digest", metavar="DIGEST", help="refuse unless the plan has this digest")
    options.add_accept_option(parser)
    parser.add_argument("--auto-approve", action="store_true", help="do not ask; needed where there is no terminal")
    parser.add_argument("--validate-only", action="store_true", help="let the cluster validate everything, write nothing")
    parser.add_argument("--report", metavar="FILE", help="also write the report as JSON to a file; revert reads it")
    parser.add_argument(
        "--audit", metavar="FILE", help="add one line of JSON to this file: who, when, which cluster, how it ended"
    )


def add_long_run_options(parser: argparse.ArgumentParser) -> None:
    """How a write of many changes goes on: in steps, and until when."""
    parser.add_argument(
        "--step-down", metavar="FACTOR", type=float, help="lower limits in steps of at most this factor (2 halves), each verified"
    )
    parser.add_argument("--step-wait", metavar="SECONDS", type=float, help="wait so long between two steps (default: 11)")
    parser.add_argument(
        "--deadline",
        metavar="SECONDS",
        type=float,
        default=900.0,
        help="begin no further request after so long; waits between steps do not count (default: %(default)g)",
    )


def settings(args: argparse.Namespace) -> ApplySettings:
    """How the run writes. Raises ``UsageError`` for a deadline that is none."""
    from reconciler.apply.executor import ApplySettings

    if not 1 <= args.deadline <= _LONGEST_WAIT:
        raise UsageError(f"--deadline takes seconds from 1 to {_LONGEST_WAIT:g}, not {args.deadline:g}")
    return ApplySettings(validate_only=args.validate_only, run_seconds=args.deadline)


def step_down(args: argparse.Namespace) -> StepDown | None:
    """How limits go down, when not at once. Raises ``UsageError``."""
    from reconciler.apply.steps import WINDOW_SECONDS, StepDown

    if args.step_down is None:
        if args.step_wait is not None:
            raise UsageError("--step-wait says how long to wait between the steps of --step-down FACTOR, which is not given")
        return None
    if not 1.01 <= args.step_down < math.inf:
        raise UsageError(f"--step-down takes a factor from 1.01 on (2 halves a limit with each step), not {args.step_down:g}")
    wait = WINDOW_SECONDS if args.step_wait is None else args.step_wait
    if not 0 <= wait <= _LONGEST_WAIT:
        raise UsageError(f"--step-wait takes seconds from 0 to {_LONGEST_WAIT:g}, not {wait:g}")
    return StepDown(factor=args.step_down, wait_seconds=wait)


class Audit:
    """The audit file, if one is wanted; and which cluster the run is about, as far as that is known."""

    def __init__(self, args: argparse.Namespace, file: AuditFile | None) -> None:
        self._args = args
        self._file = file
        self.spec: ClusterSpec | None = None

    def about(self, spec: ClusterSpec, *, source: Callable[[], Source], trusted: TrustedTree | None) -> None:
        """What is known before the cluster is asked."""
        self.spec = spec
        if self._file is None:
            return
        from reconciler.workflows.connect import principal

        args = self._args
        who = None
        # Settings that cannot be used are an error of connecting, and told there.
        with contextlib.suppress(ReconcilerError):
            who = principal(spec, options.access(args), trusted=trusted)
        self._file.about(spec, source=source(), principal=who)

    def ended(self, report: ApplyReport) -> None:
        """Add the line. Raises ``FileAccessError``."""
        if self._file is not None:
            self._file.ended(report)

    def broke_off(self, error: BaseException) -> None:
        """Add the line of a run that an error ended before anything was written."""
        if self._file is None:
            return
        try:
            self._file.broke_off(error)
        except FileAccessError as broken:
            output.tell(str(broken))


@contextlib.contextmanager
def audited(args: argparse.Namespace, command: str) -> Iterator[Audit]:
    """Audit what happens inside, also when an error ends it, and with JSON print the document of that, too.

    A way of calling that cannot work is no run. Raises ``FileAccessError`` at once, before anything else is done, when no line
    could be added to the audit file.
    """
    audit = Audit(args, None)
    try:
        audit = _opened(args, command)
        yield audit
    except UsageError:
        raise
    except BaseException as error:
        audit.broke_off(error)
        _print_failure(args, error, audit.spec)
        raise


def _opened(args: argparse.Namespace, command: str) -> Audit:
    if args.audit is None:
        return Audit(args, None)
    from reconciler.workflows.audit import AuditFile
    from reconciler.workflows.system_clock import SystemClock

    return Audit(args, AuditFile(Path(args.audit), command=command, validate_only=args.validate_only, clock=SystemClock()))


def _print_failure(args: argparse.Namespace, error: BaseException, spec: ClusterSpec | None) -> None:
    """With JSON, stdout holds one document however a run ends; that of bad manifests are their findings, printed already."""
    if args.format != "json" or isinstance(error, ManifestError | OutputError):
        return
    from reconciler.apply.document import failure_to_json
    from reconciler.model.state import ClusterIdentity

    cluster = ClusterIdentity(name=spec.name, id=spec.cluster_id) if spec else ClusterIdentity()
    # The error itself is what matters, and is told on stderr whether or not this can be printed.
    with contextlib.suppress(OutputError):
        output.print_result(
            args,
            document=lambda: failure_to_json(error, cluster=cluster, validate_only=args.validate_only),
            lines=lambda: (),
        )


def show_plan(args: argparse.Namespace, plan: Plan) -> None:
    """Print a plan where people look; with JSON, stdout belongs to the report."""
    from reconciler.render.plan_text import plan_lines

    output.print_lines(args, plan_lines(plan), sys.stderr if args.format == "json" else sys.stdout)


def preview(args: argparse.Namespace, plan: Plan, progress: PatientProgress) -> None:
    """Show a plan that is not going to be written."""
    with progress.silent():
        show_plan(args, plan)


def confirm(args: argparse.Namespace, plan: Plan, progress: PatientProgress | None = None) -> bool:
    """Show the plan and ask. Raises ``NotConfirmedError`` when there is nobody to ask."""
    with progress.silent() if progress else contextlib.nullcontext():
        if not (args.quiet and args.auto_approve):
            show_plan(args, plan)
        if args.auto_approve:
            return True
        if os.environ.get("CI") or not sys.stdin.isatty():
            msg = "there is no terminal to ask at; review the plan and pass --auto-approve"
            raise NotConfirmedError(msg)
        print("Apply these changes? Only 'yes' is accepted: ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip() == "yes"


@contextlib.contextmanager
def given_back(cluster: QuotaCluster) -> Iterator[None]:
    """Close the connection at the end; an interrupt while that goes on must not cost the report of what was written."""
    try:
        yield
    except BaseException:
        cluster.close()
        raise
    with contextlib.suppress(KeyboardInterrupt):
        cluster.close()


def finish(args: argparse.Namespace, report: ApplyReport, audit: Audit, *, also: Callable[[], None] | None = None) -> int:
    """Audit, print and write the report; each is tried, whatever becomes of the others. Returns the exit code."""
    from reconciler.apply.document import report_to_json
    from reconciler.formats.canonical import document_text
    from reconciler.formats.whole_file import write_whole
    from reconciler.model.report import ApplyResult
    from reconciler.render.report_text import report_lines

    code = {
        ApplyResult.DONE: exit_codes.DONE,
        ApplyResult.NOTHING_TO_DO: exit_codes.DONE,
        ApplyResult.FAILED: exit_codes.NOT_DONE,
        ApplyResult.REFUSED: exit_codes.REFUSED,
        ApplyResult.PARTIAL: exit_codes.PARTIAL,
    }[report.result]

    def to_file() -> None:
        if args.report:
            write_whole(Path(args.report), [document_text(report_to_json(report))])

    def to_stdout() -> None:
        output.print_result(args, document=lambda: report_to_json(report), lines=lambda: report_lines(report))

    for leave in (lambda: audit.ended(report), to_file, to_stdout, also):
        failed = _left(leave, report)
        code = code or failed
    if report.message and args.format == "json":
        output.tell(report.message)
    return code


def _left(leave: Callable[[], None] | None, report: ApplyReport) -> int:
    """Leave one trace of the run; the exit code if that fails, which never says that less was written than was."""
    failed = exit_codes.PARTIAL if report.wrote else exit_codes.NOT_DONE
    try:
        if leave is not None:
            leave()
    except (OutputError, FileAccessError) as error:
        output.tell(str(error))
        return failed
    except KeyboardInterrupt:
        # Who presses it twice wants an end, and still the report.
        return exit_codes.PARTIAL if report.wrote else exit_codes.INTERRUPTED
    except Exception as error:
        if not report.wrote:
            raise
        output.tell(f"internal error: {type(error).__name__}: {error}; please report it")
        return failed
    return exit_codes.DONE
