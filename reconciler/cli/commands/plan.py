"""``kafka-quotas plan``: what apply would change, without changing anything."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import every_cluster, exit_codes, options, output, renderings
from reconciler.cli.arguments import ClusterArguments, typed
from reconciler.errors import ManifestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.cli.progress import PatientProgress
    from reconciler.model import Plan
    from reconciler.ports import Progress
    from reconciler.workflows import Extras, GivenBaseline, Intent, References


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments(ClusterArguments):
    """The command line of ``plan``."""

    all_clusters: bool
    parallel: int
    changed_since: str | None
    owner: tuple[str, ...]
    current: str | None
    trusted_ref: str | None
    base: str | None
    baseline: str | None
    server_check: str | None
    show_effects: bool
    known_clients: str | None
    accept: tuple[str, ...]
    fail_on: str
    show_unmanaged: bool
    detailed_exitcode: bool
    out: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``plan``."""
    options.add_path_argument(parser)
    parser.add_argument("--show-effects", action="store_true", help="show which known clients move to another limit")
    parser.add_argument(
        "--known-clients", metavar="FILE", help="with --show-effects: add these clients, JSON lines of user and client-id"
    )
    parser.add_argument("--show-unmanaged", action="store_true", help="list entities that no manifest declares and apply keeps")
    options.add_owner_option(parser, "plan")
    safety = options.section(parser, "Safety")
    safety.add_argument(
        "--server-check",
        choices=("cluster", "sandbox"),
        metavar="WHERE",
        help="let a broker check the changes without writing: cluster (needs AlterConfigs there) or sandbox (a local Kafka)",
    )
    options.add_accept_option(parser)
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_base_option(parser)
    options.add_baseline_option(parser)
    options.add_cluster_options(parser)
    options.add_all_clusters_option(parser, "plan")
    options.add_parallel_option(parser)
    options.add_changed_since_option(parser, "plan")
    options.add_current_option(parser, "compare with this snapshot instead of the live cluster")
    options.add_detailed_exitcode_option(parser, "exit 2 when there are changes")
    options.add_output_options(parser, formats=renderings.PLAN_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> PlanArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(PlanArguments, namespace)


def run(args: PlanArguments) -> int:
    """Plan and print; 0, or 2 for changes with ``--detailed-exitcode``, or 1 for findings that stop it."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import Severity
    from reconciler.policy import check_guard_ids
    from reconciler.workflows import References, load_intent, stop_on

    check_guard_ids(args.accept)
    files = output.parse_out(args.out, formats=renderings.PLAN_FORMATS)
    options.check_one_state(args, args.current)
    options.check_all_clusters(
        all_clusters=args.all_clusters,
        cluster=args.cluster,
        bootstrap_server=args.bootstrap_server,
        zookeeper=args.zookeeper,
        current=args.current,
    )
    options.check_changed_since(all_clusters=args.all_clusters, since=args.changed_since)
    extras = _extras(args)
    references = References(trusted=args.trusted_ref, base=args.base)
    with PatientProgress(args) as progress:
        progress.step("reading the manifests")
        try:
            if args.all_clusters:
                return _every(args, extras, references, files, progress)
            intent = load_intent(
                args.paths,
                cluster=args.cluster,
                fail_on=Severity(args.fail_on),
                references=references,
                by_owner=True,
                owners=args.owner,
            )
            given = options.baseline(args.baseline, args.paths, intent.trusted)
        except ManifestError as error:
            if not args.all_clusters:
                output.write_findings(files, error.findings)
            output.print_findings(args, error.findings, to_stdout=True)
            raise
        plan = _plan(args, intent, given, extras, progress)
    output.print_findings(args, plan.findings, to_stdout=False)
    output.print_plan(args, plan, files)
    stop_on((*plan.findings, *plan.owner_errors), Severity(args.fail_on))
    return exit_codes.DIFFERENCES if args.detailed_exitcode and plan.changes else exit_codes.DONE


def _extras(args: PlanArguments) -> Extras:
    """What the command line wants. Raises ``UsageError``."""
    from reconciler.workflows import Checker, Extras

    if args.known_clients and not args.show_effects:
        msg = "--known-clients needs --show-effects"
        raise UsageError(msg)
    if args.server_check == Checker.CLUSTER and args.current:
        msg = "--server-check=cluster asks the live cluster and --current reads a file. --server-check=sandbox works with both"
        raise UsageError(msg)
    return Extras(
        server_check=Checker(args.server_check) if args.server_check else None,
        show_unmanaged=args.show_unmanaged,
        show_effects=args.show_effects,
        known_clients=Path(args.known_clients) if args.known_clients else None,
    )


def _plan(args: PlanArguments, intent: Intent, given: GivenBaseline | None, extras: Extras, progress: Progress) -> Plan:
    from reconciler.model import display_name
    from reconciler.workflows import SystemClock, make_plan, quota_reader

    access = options.access(args, current=args.current)
    name = f"cluster {display_name(intent.spec.name)}" if intent.spec.name else "the cluster"
    progress.step(f"reading the quotas of {name}")
    with quota_reader(intent.spec, access, trusted=intent.trusted) as source:
        return make_plan(intent, source, accepted=args.accept, clock=SystemClock(), given=given, extras=extras, progress=progress)


def _every(
    args: PlanArguments,
    extras: Extras,
    references: References,
    files: Sequence[tuple[str, Path]],
    progress: PatientProgress,
) -> int:
    from reconciler.documents import plan_to_json
    from reconciler.model import ClusterFailure, Severity
    from reconciler.render import plan_view
    from reconciler.workflows import for_every, load_every_intent, only_changed

    every_cluster.check_formats(args, files)
    fail_on = Severity(args.fail_on)
    intents = load_every_intent(args.paths, fail_on=fail_on, references=references, by_owner=True, owners=args.owner)
    intents = only_changed(intents, args.paths, since=args.changed_since, trusted_ref=args.trusted_ref)
    given = options.baseline(args.baseline, args.paths, None, all_clusters=True)
    plans = for_every(
        intents, lambda intent: _plan(args, intent, given, extras, progress), parallel=options.check_parallel(args.parallel)
    )
    with progress.silent():
        every_cluster.print_every(args, plans, document=plan_to_json, lines=lambda plan: plan_view(plan).lines, files=files)
    made = [plan for plan in plans if not isinstance(plan, ClusterFailure)]
    stopped = any(finding.severity.at_least(fail_on) for plan in made for finding in (*plan.findings, *plan.owner_errors))
    return every_cluster.exit_code(
        plans, differs=lambda plan: bool(plan.changes), detailed=args.detailed_exitcode, stopped=stopped
    )
