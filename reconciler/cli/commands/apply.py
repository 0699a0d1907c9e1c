"""``kafka-quotas apply``: change the cluster to what the manifests declare, and verify."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import options, output, run_outputs, writing
from reconciler.cli.arguments import LongRunArguments, typed
from reconciler.errors import ManifestError

if TYPE_CHECKING:
    from reconciler.model import ApplyReport
    from reconciler.workflows import Approval, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyArguments(LongRunArguments):
    """The command line of ``apply``."""

    base: str | None
    baseline: str | None
    plan: str | None
    record_baseline: str | None
    fail_on: str
    owner: tuple[str, ...]
    all_clusters: bool
    parallel: int
    changed_since: str | None
    keep_going: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``apply``."""
    options.add_path_argument(parser)
    parser.add_argument(
        "--plan", metavar="FILE", help="apply this saved plan (plan --out json=FILE), and refuse when a new plan would differ"
    )
    options.add_owner_option(parser, "apply")
    writing.add_long_run_options(parser)
    writing.add_writing_options(parser)
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_base_option(parser)
    options.add_baseline_option(parser)
    options.section(parser, "Git").add_argument(
        "--record-baseline", metavar="FILE", help="write a baseline for drift to this file, after a complete run"
    )
    options.add_cluster_options(parser)
    options.add_all_clusters_option(parser, "apply to")
    options.add_parallel_option(parser)
    options.add_changed_since_option(parser, "apply to")
    options.section(parser, "Cluster").add_argument(
        "--keep-going", action="store_true", help="with --all-clusters: go on after a cluster that failed"
    )
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> ApplyArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(ApplyArguments, namespace)


def run(args: ApplyArguments) -> int:
    """Apply and print the report; the exit code states whether anything was written."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import Severity
    from reconciler.policy import check_guard_ids
    from reconciler.workflows import (
        PlanViews,
        References,
        SystemClock,
        apply_manifests,
        check_recordable,
        load_intent,
        open_cluster,
        source_of,
    )

    check_guard_ids(args.accept)
    options.check_changed_since(all_clusters=args.all_clusters, since=args.changed_since)
    if args.all_clusters:
        from reconciler.cli.apply_rollout import apply_to_every

        return apply_to_every(args)
    with run_outputs.audited(args, "apply") as audit, PatientProgress(args) as progress:
        approval = _approval(args)
        try:
            progress.step("reading the manifests")
            references = References(trusted=args.trusted_ref, base=args.base)
            intent = load_intent(
                args.paths,
                cluster=args.cluster,
                fail_on=Severity(args.fail_on),
                references=references,
                by_owner=True,
                owners=args.owner,
            )
            given = options.baseline(args.baseline, args.paths, intent.trusted)
            if args.record_baseline:
                check_recordable(intent, Path(args.record_baseline), validate_only=args.validate_only)
            audit.about(intent.spec, source=lambda: source_of(Path(intent.paths[0])), trusted=intent.trusted)
            progress.step("connecting to the cluster")
            cluster = open_cluster(intent.spec, options.access(args), trusted=intent.trusted)
            with writing.given_back(cluster):
                report = apply_manifests(
                    intent,
                    cluster,
                    approval,
                    confirm=lambda plan: writing.confirm(args, plan, progress),
                    clock=SystemClock(),
                    progress=progress,
                    given=given,
                    views=PlanViews(
                        on_plan=lambda plan: writing.show_findings(args, plan, progress),
                        on_refusal=lambda plan: writing.show_refused(args, plan, progress),
                    ),
                )
        except ManifestError as error:
            output.print_findings(args, error.findings, to_stdout=True)
            raise
    return run_outputs.finish(args, report, audit, also=lambda: _record(args, report, intent))


def _approval(args: ApplyArguments) -> Approval:
    from reconciler.planning import read_saved_plan
    from reconciler.workflows import Approval

    saved = read_saved_plan(output.read_file(Path(args.plan)), name=args.plan) if args.plan else None
    return Approval(
        accepted=tuple(args.accept),
        expected_digest=args.expect_digest,
        saved=saved,
        settings=writing.settings(args),
        step_down=writing.step_down(args),
    )


def _record(args: ApplyArguments, report: ApplyReport, intent: Intent) -> None:
    from reconciler.workflows import is_clean, write_baseline

    if not args.record_baseline:
        return
    if is_clean(report):
        write_baseline(intent, report, Path(args.record_baseline))
    elif not args.quiet:
        output.tell("no baseline was recorded: the run was not a complete one")
