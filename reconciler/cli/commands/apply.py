"""``kafka-quotas apply``: change the cluster to what the manifests say, and verify."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import options, output, writing
from reconciler.errors import ManifestError, UsageError

if TYPE_CHECKING:
    from reconciler.apply.steps import StepDown
    from reconciler.model.report import ApplyReport
    from reconciler.workflows.apply import Approval
    from reconciler.workflows.plan import Intent

_LONGEST_WAIT: Final = 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``apply``."""
    options.add_path_argument(parser)
    options.add_cluster_options(parser)
    options.add_trusted_ref_option(parser)
    options.add_base_option(parser)
    parser.add_argument("--plan", metavar="FILE", help="a saved plan (plan --out json=FILE); refused when it would differ now")
    writing.add_writing_options(parser)
    parser.add_argument(
        "--step-down", metavar="FACTOR", type=float, help="lower limits in steps of at most this factor (2 halves), each verified"
    )
    parser.add_argument("--step-wait", metavar="SECONDS", type=float, help="wait so long between two steps (default: 11)")
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
    from reconciler.workflows.git_source import source_of
    from reconciler.workflows.plan import load_intent
    from reconciler.workflows.record_baseline import check_recordable
    from reconciler.workflows.references import References
    from reconciler.workflows.system_clock import SystemClock

    check_guard_ids(args.accept)
    with writing.audited(args, "apply") as audit:
        approval = _approval(args)
        try:
            references = References(trusted=args.trusted_ref, base=args.base)
            intent = load_intent(args.paths, cluster=args.cluster, fail_on=Severity(args.fail_on), references=references)
            if args.record_baseline:
                check_recordable(intent, Path(args.record_baseline), validate_only=args.validate_only)
            output.print_findings(args, intent.findings, to_stdout=False)
            audit.about(intent.spec, source=lambda: source_of(Path(intent.paths[0])), trusted=intent.trusted)
            cluster = connect(intent.spec, options.access(args), trusted=intent.trusted)
            with contextlib.closing(cluster):
                report = apply(
                    intent,
                    cluster,
                    approval,
                    confirm=lambda plan: writing.confirm(args, plan),
                    clock=SystemClock(),
                    progress=output.StderrProgress(args),
                )
        except ManifestError as error:
            output.print_findings(args, error.findings, to_stdout=True)
            raise
    return writing.finish(args, report, audit, also=lambda: _record(args, report, intent))


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
        step_down=_step_down(args),
    )


def _step_down(args: argparse.Namespace) -> StepDown | None:
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


def _record(args: argparse.Namespace, report: ApplyReport, intent: Intent) -> None:
    from reconciler.workflows.record_baseline import is_clean, record_baseline

    if not args.record_baseline:
        return
    if is_clean(report):
        record_baseline(intent, report, Path(args.record_baseline))
    elif not args.quiet:
        print("kafka-quotas: no baseline was recorded: the run was not a complete one", file=sys.stderr)
