"""What ``apply`` and ``revert`` share: options, the question, the report, and the audit file."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output
from reconciler.errors import FileAccessError, NotConfirmedError, OutputError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from reconciler.model.cluster import ClusterSpec
    from reconciler.model.plan import Plan, Source
    from reconciler.model.report import ApplyReport
    from reconciler.workflows.audit import AuditFile
    from reconciler.workflows.trusted import TrustedTree


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


class Audit:
    """The audit file, if one is wanted; else nothing."""

    def __init__(self, args: argparse.Namespace, file: AuditFile | None) -> None:
        self._args = args
        self._file = file

    def about(self, spec: ClusterSpec, *, source: Callable[[], Source], trusted: TrustedTree | None) -> None:
        """What is known before the cluster is asked."""
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


@contextlib.contextmanager
def audited(args: argparse.Namespace, command: str) -> Iterator[Audit]:
    """Audit what happens inside, also when an error ends it; a way of calling that cannot work is no run.

    Raises ``FileAccessError`` at once, before anything else is done, when no line could be added.
    """
    if args.audit is None:
        yield Audit(args, None)
        return
    from reconciler.workflows.audit import AuditFile
    from reconciler.workflows.system_clock import SystemClock

    file = AuditFile(Path(args.audit), command=command, validate_only=args.validate_only, clock=SystemClock())
    try:
        yield Audit(args, file)
    except UsageError:
        raise
    except BaseException as error:
        try:
            file.broke_off(error)
        except FileAccessError as broken:
            print(f"kafka-quotas: {broken}", file=sys.stderr)
        raise


def show_plan(args: argparse.Namespace, plan: Plan) -> None:
    """Print a plan where people look; with JSON, stdout belongs to the report."""
    from reconciler.render.plan_text import plan_lines

    output.print_lines(args, plan_lines(plan), sys.stderr if args.format == "json" else sys.stdout)


def confirm(args: argparse.Namespace, plan: Plan) -> bool:
    """Show the plan and ask. Raises ``NotConfirmedError`` when there is nobody to ask."""
    if not (args.quiet and args.auto_approve):
        show_plan(args, plan)
    if args.auto_approve:
        return True
    if os.environ.get("CI") or not sys.stdin.isatty():
        msg = "there is no terminal to ask at; review the plan and pass --auto-approve"
        raise NotConfirmedError(msg)
    print("Apply these changes? Only 'yes' is accepted: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


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
        try:
            if leave is not None:
                leave()
        except (OutputError, FileAccessError) as error:
            print(f"kafka-quotas: {error}", file=sys.stderr)
            code = code or (exit_codes.PARTIAL if report.wrote else exit_codes.NOT_DONE)
    if report.message and args.format == "json":
        print(f"kafka-quotas: {report.message}", file=sys.stderr)
    return code
