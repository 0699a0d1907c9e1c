"""``kafka-quotas report``: one page with the state of all clusters. It never writes to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, option_groups
from reconciler.cli.declaration import group, option
from reconciler.cli.results import OutFile, Result

if TYPE_CHECKING:
    from reconciler.features.insight.report import Overview

_FORMATS: Final = ("text", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportArguments:
    """The command line of ``report``."""

    paths: tuple[str, ...] = option_groups.PATHS
    run: tuple[str, ...] = option(
        "--run",
        metavar="FILE",
        help="compare what the backtest predicted of this report of apply --backtest with spec.traffic since, for the runs of "
        "the last 30 days (repeatable)",
    )
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(
        option_groups.ConnectionOptions, cluster="show this Cluster manifest only [default: all]"
    )
    current: str | None = option_groups.CURRENT
    detailed_exitcode: bool = option_groups.detailed_exitcode("exit 2 on drift, to which unmanaged entities do not belong")
    format: str = option_groups.format_option(_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(_FORMATS)


def run(args: ReportArguments) -> Result:
    """Read; exit 1 when a cluster could not be read, 2 for differences with ``--detailed-exitcode``."""
    from reconciler.features.insight.report_page import overview_lines, report_html

    overview = _read(args)
    code = exit_codes.DONE
    if overview.has_failed:
        code = exit_codes.NOT_DONE
    elif args.detailed_exitcode and any(cluster.differs for cluster in overview.clusters):
        code = exit_codes.DIFFERENCES
    return Result(exit=code, view=lambda: overview_lines(overview), forms={"html": lambda: report_html(overview)})


def _read(args: ReportArguments) -> Overview:
    from reconciler.cli.output import LiveProgress
    from reconciler.features.insight.predictions import read_runs_with_predictions
    from reconciler.features.insight.report import make_report
    from reconciler.workflows import read_trusted_files

    if args.trusted_ref is not None and args.run:
        trusted = read_trusted_files(args.trusted_ref, args.paths[0])
        for file in args.run:
            trusted.require_same(file)
    predicted, access = read_runs_with_predictions(args.run), args.connection.access(args.current)
    with LiveProgress() as progress:
        progress.step("reading the manifests")
        return make_report(
            args.paths, args.connection.cluster, access, trusted_ref=args.trusted_ref, predicted=predicted, progress=progress
        )
