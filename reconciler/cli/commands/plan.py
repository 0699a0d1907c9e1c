"""``kafka-quotas plan``: what apply would change, without changing anything."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from reconciler.cli import every_cluster, exit_codes, options, output, plan_extras, renderings
from reconciler.errors import ManifestError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reconciler.cli.progress import PatientProgress
    from reconciler.model import Plan
    from reconciler.ports import Progress, QuotaReader
    from reconciler.workflows import Extras, GivenBaseline, Intent, References


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``plan``."""
    options.add_path_argument(parser)
    options.add_cluster_options(parser)
    options.add_all_clusters_option(parser)
    parser.add_argument("--current", metavar="FILE", help="compare with this snapshot, not the live cluster")
    options.add_trusted_ref_option(parser)
    options.add_base_option(parser)
    options.add_baseline_option(parser)
    plan_extras.add_arguments(parser)
    options.add_accept_option(parser)
    options.add_fail_on_option(parser)
    parser.add_argument("--show-unmanaged", action="store_true", help="list what no manifest declares and is left")
    parser.add_argument("--detailed-exitcode", action="store_true", help="exit 2 when there are changes")
    options.add_out_option(parser, renderings.PLAN_FORMATS)
    options.add_output_options(parser, formats=renderings.PLAN_FORMATS)


def run(args: argparse.Namespace) -> int:
    """Plan and print; 0, or 2 for changes with ``--detailed-exitcode``, or 1 for findings that stop it."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import Severity
    from reconciler.policy import check_guard_ids
    from reconciler.workflows import References, load_intent, stop_on

    check_guard_ids(args.accept)
    files = output.parse_out(args.out, formats=renderings.PLAN_FORMATS)
    options.check_one_state(args)
    options.check_all_clusters(args, "bootstrap_server", "zookeeper", "current")
    extras = plan_extras.extras_of(args)
    references = References(trusted=args.trusted_ref, base=args.base)
    with PatientProgress(args) as progress:
        progress.step("reading the manifests")
        try:
            if args.all_clusters:
                return _every(args, extras, references, files, progress)
            intent = load_intent(args.paths, cluster=args.cluster, fail_on=Severity(args.fail_on), references=references)
            given = options.baseline(args, intent.trusted)
        except ManifestError as error:
            if not args.all_clusters:
                output.write_findings(files, error.findings)
            output.print_findings(args, error.findings, to_stdout=True)
            raise
        plan = _plan(args, intent, given, extras, progress)
    output.print_findings(args, plan.findings, to_stdout=False)
    output.print_plan(args, plan, files)
    stop_on(plan.findings, Severity(args.fail_on))
    return exit_codes.DIFFERENCES if args.detailed_exitcode and plan.changes else exit_codes.DONE


def _plan(args: argparse.Namespace, intent: Intent, given: GivenBaseline | None, extras: Extras, progress: Progress) -> Plan:
    from reconciler.model import display_name
    from reconciler.workflows import SystemClock, make_plan, plan_with, quota_reader

    def make(reader: QuotaReader) -> Plan:
        return make_plan(
            intent, reader, accepted=args.accept, clock=SystemClock(), given=given, show_unmanaged=args.show_unmanaged
        )

    access = options.access(args)
    name = f"cluster {display_name(intent.spec.name)}" if intent.spec.name else "the cluster"
    progress.step(f"reading the quotas of {name}")
    with quota_reader(intent.spec, access, trusted=intent.trusted) as source:
        return plan_with(extras, make, source, trusted=intent.trusted, progress=progress)


def _every(
    args: argparse.Namespace,
    extras: Extras,
    references: References,
    files: Sequence[tuple[str, Path]],
    progress: PatientProgress,
) -> int:
    from reconciler.documents import plan_to_json
    from reconciler.model import ClusterFailure, Severity
    from reconciler.render import plan_lines
    from reconciler.workflows import for_every, load_every_intent

    every_cluster.check_formats(args, files)
    fail_on = Severity(args.fail_on)
    intents = load_every_intent(args.paths, fail_on=fail_on, references=references)
    given = options.baseline(args, None)
    plans = for_every(intents, lambda intent: _plan(args, intent, given, extras, progress))
    with progress.silent():
        every_cluster.print_every(args, plans, document=plan_to_json, lines=plan_lines, files=files)
    made = [plan for plan in plans if not isinstance(plan, ClusterFailure)]
    stopped = any(finding.severity.at_least(fail_on) for plan in made for finding in plan.findings)
    return every_cluster.exit_code(args, plans, differs=lambda plan: bool(plan.changes), stopped=stopped)
