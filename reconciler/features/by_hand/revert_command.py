"""``kafka-quotas revert``: write the values before an apply, from its report, and verify."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.cli import option_groups, output, writing
from reconciler.cli.declaration import argument, group
from reconciler.cli.results import Result


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
    from reconciler.features.by_hand.revert import load_undoing, revert_report
    from reconciler.policy import check_guard_ids
    from reconciler.ports import SystemClock
    from reconciler.workflows import Approval, Dialogue, open_cluster

    write, connection = args.write, args.connection
    check_guard_ids(write.accept)
    access = connection.access()
    with writing.audited(write, "revert", args.format) as audit, LiveProgress() as progress:
        approver = writing.Approver(write=write, as_json=args.format == "json", progress=progress)
        approval = Approval(
            accepted=write.accept, expected_digest=write.expect_digest, settings=write.settings(), step_down=write.steps()
        )
        undoing = load_undoing(
            output.read_file(Path(args.reported)),
            file=args.reported,
            paths=args.paths,
            cluster=connection.cluster,
            trusted_ref=args.trusted_ref,
        )
        target = undoing.target
        audit.about(target.spec, access, source=lambda: target.source, trusted=target.trusted)
        progress.step("connecting to the cluster")
        cluster = open_cluster(target.spec, access, trusted=target.trusted)
        with writing.given_back(cluster):
            report = revert_report(
                undoing,
                cluster,
                approval,
                dialogue=Dialogue(confirm=approver.confirm, show=approver.preview, on_refusal=approver.show_refused),
                clock=SystemClock(),
                progress=progress,
            )
    return writing.finish(write, report, audit, args.format, cluster=lambda: (*args.paths, *connection.command_words()))
