"""``kafka-quotas apply``: change the cluster to what the manifests say, and verify."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output
from reconciler.errors import FileAccessError, ManifestError, NotConfirmedError, OutputError

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.model.report import ApplyReport
    from reconciler.workflows.apply import Approval
    from reconciler.workflows.plan import Intent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``apply``."""
    options.add_path_argument(parser)
    options.add_cluster_options(parser)
    options.add_trusted_ref_option(parser)
    options.add_base_option(parser)
    parser.add_argument("--plan", metavar="FILE", help="a saved plan (plan --out json=FILE); refused when it would differ now")
    parser.add_argument("--expect-digest", metavar="DIGEST", help="refuse unless the plan has this digest")
    options.add_accept_option(parser)
    parser.add_argument("--auto-approve", action="store_true", help="do not ask; needed where there is no terminal")
    parser.add_argument("--validate-only", action="store_true", help="let the cluster validate everything, write nothing")
    parser.add_argument("--report", metavar="FILE", help="also write the report as JSON to a file")
    parser.add_argument(
        "--record-baseline", metavar="FILE", help="when all is applied, write what a later drift --baseline needs"
    )
    options.add_fail_on_option(parser)
    options.add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Apply and print the report; the exit code says whether anything was written."""
    from reconciler.model.finding import Severity
    from reconciler.policy.guards import check_guard_ids
    from reconciler.workflows.apply import apply
    from reconciler.workflows.connect import connect
    from reconciler.workflows.plan import load_intent
    from reconciler.workflows.record_baseline import check_recordable
    from reconciler.workflows.references import References
    from reconciler.workflows.system_clock import SystemClock

    check_guard_ids(args.accept)
    approval = _approval(args)
    try:
        references = References(trusted=args.trusted_ref, base=args.base)
        intent = load_intent(args.paths, cluster=args.cluster, fail_on=Severity(args.fail_on), references=references)
    except ManifestError as error:
        output.print_findings(args, error.findings, to_stdout=True)
        raise
    if args.record_baseline:
        check_recordable(intent, Path(args.record_baseline), validate_only=args.validate_only)
    output.print_findings(args, intent.findings, to_stdout=False)
    cluster = connect(
        intent.spec, bootstrap_server=args.bootstrap_server, command_config=args.command_config, trusted=intent.trusted
    )
    try:
        report = apply(
            intent,
            cluster,
            approval,
            confirm=lambda plan: _confirm(args, plan),
            clock=SystemClock(),
            progress=output.StderrProgress(args),
        )
    except ManifestError as error:
        output.print_findings(args, error.findings, to_stdout=True)
        raise
    finally:
        cluster.close()
    return _finish(args, report, intent)


def _approval(args: argparse.Namespace) -> Approval:
    from reconciler.apply.executor import ApplySettings
    from reconciler.planning.saved_plan import read_saved_plan
    from reconciler.workflows.apply import Approval

    saved = read_saved_plan(output.read_file(Path(args.plan)), name=args.plan) if args.plan else None
    return Approval(
        accepted=tuple(args.accept),
        expected_digest=args.expect_digest,
        saved=saved,
        settings=ApplySettings(validate_only=args.validate_only),
    )


def _confirm(args: argparse.Namespace, plan: Plan) -> bool:
    from reconciler.render.plan_text import plan_lines

    if not (args.quiet and args.auto_approve):
        # With JSON, stdout belongs to the report; the plan that is asked about goes where the question goes.
        output.print_lines(args, plan_lines(plan), sys.stderr if args.format == "json" else sys.stdout)
    if args.auto_approve:
        return True
    if os.environ.get("CI") or not sys.stdin.isatty():
        msg = "there is no terminal to ask at; review the plan and pass --auto-approve"
        raise NotConfirmedError(msg)
    print("Apply these changes? Only 'yes' is accepted: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


def _finish(args: argparse.Namespace, report: ApplyReport, intent: Intent) -> int:
    from reconciler.apply.document import report_to_json
    from reconciler.formats.canonical import document_text
    from reconciler.formats.whole_file import write_whole
    from reconciler.model.report import ApplyResult, ChangeStatus
    from reconciler.render.report_text import report_lines

    code = {
        ApplyResult.DONE: exit_codes.DONE,
        ApplyResult.NOTHING_TO_DO: exit_codes.DONE,
        ApplyResult.FAILED: exit_codes.NOT_DONE,
        ApplyResult.REFUSED: exit_codes.REFUSED,
        ApplyResult.PARTIAL: exit_codes.PARTIAL,
    }[report.result]
    try:
        output.print_result(args, document=lambda: report_to_json(report), lines=lambda: report_lines(report))
        if args.report:
            write_whole(Path(args.report), [document_text(report_to_json(report))])
        if args.record_baseline:
            _record(args, report, intent)
    except (OutputError, FileAccessError) as error:
        print(f"kafka-quotas: {error}", file=sys.stderr)
        code = code or (exit_codes.PARTIAL if report.count(ChangeStatus.APPLIED) else exit_codes.NOT_DONE)
    if report.message and args.format == "json":
        print(f"kafka-quotas: {report.message}", file=sys.stderr)
    return code


def _record(args: argparse.Namespace, report: ApplyReport, intent: Intent) -> None:
    from reconciler.workflows.record_baseline import is_clean, record_baseline

    if is_clean(report):
        record_baseline(intent, report, Path(args.record_baseline))
    elif not args.quiet:
        print("kafka-quotas: no baseline was recorded: the run was not a complete one", file=sys.stderr)
