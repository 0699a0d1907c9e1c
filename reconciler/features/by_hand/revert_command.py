"""``kafka-quotas revert``: write the values before an apply, from its report, and verify."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import option_groups, output, writing
from reconciler.cli.declaration import argument, group
from reconciler.cli.results import Result

if TYPE_CHECKING:
    from reconciler.features.by_hand.revert import Undoing
    from reconciler.model import ApplyReport
    from reconciler.workflows import Access, Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertArguments:
    """The command line of ``revert``."""

    reported: str = argument("REPORT", help="the report of the run to revert (apply --report FILE)")
    paths: tuple[str, ...] = option_groups.connection_paths(" and the limits of a write")
    write: writing.LongWritingOptions = group(writing.LongWritingOptions)
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    format: str = option_groups.format_option()


def run(args: RevertArguments) -> Result:
    """Plan the way back, write it, print its report; the exit code states whether anything was written."""
    from reconciler.cli.output import LiveProgress
    from reconciler.features.by_hand.revert import load_undoing
    from reconciler.policy import check_guard_ids

    check_guard_ids(args.write.accept)
    access = args.connection.access()
    with writing.audited(args.write, "revert", args.format) as audit, LiveProgress() as progress:
        approver = writing.Approver(write=args.write, as_json=args.format == "json", progress=progress)
        approval = _approval(args.write)
        undoing = load_undoing(
            output.read_file(Path(args.reported)),
            file=args.reported,
            paths=args.paths,
            cluster=args.connection.cluster,
            trusted_ref=args.trusted_ref,
        )
        audit.about(undoing.target.spec, access, source=lambda: undoing.target.source, trusted=undoing.target.trusted)
        progress.step("connecting to the cluster")
        report = _revert(undoing, access, approval, approver)
    cluster = lambda: (*args.paths, *args.connection.command_words())  # noqa: E731 - most runs never ask
    return writing.finish(args.write, report, audit, args.format, cluster=cluster)


def _approval(write: writing.LongWritingOptions) -> Approval:
    from reconciler.workflows import Approval

    return Approval(
        accepted=write.accept, expected_digest=write.expect_digest, settings=write.settings(), step_down=write.steps()
    )


def _revert(undoing: Undoing, access: Access, approval: Approval, approver: writing.Approver) -> ApplyReport:
    from reconciler.features.by_hand.revert import revert_report
    from reconciler.ports import SystemClock
    from reconciler.workflows import Dialogue, open_cluster

    cluster = open_cluster(undoing.target.spec, access, trusted=undoing.target.trusted)
    with writing.given_back(cluster):
        return revert_report(
            undoing,
            cluster,
            approval,
            dialogue=Dialogue(confirm=approver.confirm, show=approver.preview, on_refusal=approver.show_refused),
            clock=SystemClock(),
            progress=approver.progress,
        )
