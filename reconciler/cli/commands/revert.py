"""``kafka-quotas revert``: write the values before an apply, from its report, and verify."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import options, output, run_outputs, writing
from reconciler.cli.arguments import LongRunArguments, typed
from reconciler.errors import ManifestError

if TYPE_CHECKING:
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import ApplyReport
    from reconciler.workflows import Approval, Undoing


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertArguments(LongRunArguments):
    """The command line of ``revert``."""

    reported: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``revert``."""
    parser.add_argument("reported", metavar="REPORT", help="the report of the run to revert (apply --report FILE)")
    options.add_connection_path_argument(parser, also=" and the limits of a write")
    writing.add_long_run_options(parser)
    writing.add_writing_options(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> RevertArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(RevertArguments, namespace)


def run(args: RevertArguments) -> int:
    """Plan the way back, write it, print its report; the exit code states whether anything was written."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.policy import check_guard_ids
    from reconciler.workflows import load_undoing

    check_guard_ids(args.accept)
    with run_outputs.audited(args, "revert") as audit, PatientProgress(args) as progress:
        approval = _approval(args)
        try:
            undoing = load_undoing(
                output.read_file(Path(args.reported)),
                file=args.reported,
                paths=args.paths,
                cluster=args.cluster,
                trusted_ref=args.trusted_ref,
            )
        except ManifestError as error:
            output.print_findings(args, error.findings, to_stdout=True)
            raise
        audit.about(undoing.spec, source=lambda: undoing.source, trusted=undoing.trusted)
        report = _revert(args, undoing, approval, progress)
    return run_outputs.finish(args, report, audit)


def _revert(args: RevertArguments, undoing: Undoing, approval: Approval, progress: PatientProgress) -> ApplyReport:
    from reconciler.workflows import SystemClock, open_cluster, revert_report

    progress.step("connecting to the cluster")
    cluster = open_cluster(undoing.spec, options.access(args), trusted=undoing.trusted)
    with writing.given_back(cluster):
        return revert_report(
            undoing,
            cluster,
            approval,
            confirm=lambda plan: writing.confirm(args, plan, progress),
            preview=lambda plan: writing.preview(args, plan, progress),
            on_refusal=lambda plan: writing.show_refused(args, plan, progress),
            clock=SystemClock(),
            progress=progress,
        )


def _approval(args: RevertArguments) -> Approval:
    from reconciler.workflows import Approval

    return Approval(
        accepted=tuple(args.accept),
        expected_digest=args.expect_digest,
        settings=writing.settings(args),
        step_down=writing.step_down(args),
    )
