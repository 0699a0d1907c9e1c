"""``kafka-quotas plan``: what apply would change, without changing anything."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output, plan_extras, renderings
from reconciler.errors import ManifestError, UsageError

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.ports import QuotaReader
    from reconciler.workflows.plan import Intent
    from reconciler.workflows.plan_extras import Extras


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``plan``."""
    options.add_path_argument(parser)
    options.add_cluster_options(parser)
    parser.add_argument("--current", metavar="FILE", help="compare with this snapshot, not the live cluster")
    plan_extras.add_arguments(parser)
    options.add_accept_option(parser)
    options.add_fail_on_option(parser)
    parser.add_argument("--detailed-exitcode", action="store_true", help="exit 2 when there are changes")
    options.add_out_option(parser, renderings.PLAN_FORMATS)
    options.add_output_options(parser, formats=renderings.PLAN_FORMATS)


def run(args: argparse.Namespace) -> int:
    """Plan and print; 0, or 2 for changes with ``--detailed-exitcode``, or 1 for findings that stop it."""
    from reconciler.model.finding import Severity
    from reconciler.policy.guards import check_guard_ids
    from reconciler.workflows.load import stop_on
    from reconciler.workflows.plan import load_intent

    check_guard_ids(args.accept)
    files = output.parse_out(args.out, formats=renderings.PLAN_FORMATS)
    if args.current and args.bootstrap_server:
        msg = "--current and --bootstrap-server exclude each other: a plan compares with one state"
        raise UsageError(msg)
    extras = plan_extras.extras_of(args)
    try:
        intent = load_intent(args.paths, cluster=args.cluster, fail_on=Severity(args.fail_on))
    except ManifestError as error:
        output.print_findings(args, error.findings, to_stdout=True)
        raise
    plan = _plan(args, intent, extras)
    output.print_findings(args, plan.findings, to_stdout=False)
    output.print_plan(args, plan, files)
    stop_on(plan.findings, Severity(args.fail_on))
    return exit_codes.DIFFERENCES if args.detailed_exitcode and plan.changes else exit_codes.DONE


def _plan(args: argparse.Namespace, intent: Intent, extras: Extras) -> Plan:
    from reconciler.workflows.plan import make_plan
    from reconciler.workflows.plan_extras import plan_with
    from reconciler.workflows.system_clock import SystemClock

    def make(reader: QuotaReader) -> Plan:
        return make_plan(intent, reader, accepted=args.accept, clock=SystemClock())

    progress = output.StderrProgress(args)
    if args.current:
        from reconciler.workflows.connect import snapshot_reader

        return plan_with(extras, make, snapshot_reader(args.current), progress=progress)
    from reconciler.workflows.connect import connect

    cluster = connect(intent.spec, bootstrap_server=args.bootstrap_server, command_config=args.command_config)
    try:
        return plan_with(extras, make, cluster, progress=progress)
    finally:
        cluster.close()
