"""``kafka-quotas run``: the long-running reconciler, for a service manager."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

from reconciler.cli import option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.every_cluster import ChosenClusters
from reconciler.cli.option_groups import BASELINE, require_reference
from reconciler.cli.results import Result
from reconciler.errors import UsageError
from reconciler.text import shown

_LONGEST: float = 86_400.0
_MOST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The command line of ``run``."""

    paths: tuple[str, ...] = option_groups.PATHS
    apply: bool = option("--apply", help="write the changes, under the guards [default: only report them]")
    interval: float = option(
        "--interval", section="Service", metavar="SECONDS", default=300.0, help="read the cluster at this interval [default: 300]"
    )
    address: str = option(
        "--address",
        section="Service",
        metavar="HOST",
        default="127.0.0.1",
        help="serve metrics and health here [default: 127.0.0.1]",
    )
    port: int = option(
        "--port",
        section="Service",
        metavar="PORT",
        default=9746,
        help="use this port, or with 0 a free one, which is printed [default: 9746]",
    )
    deadline: float = option(
        "--deadline",
        section="Service",
        metavar="SECONDS",
        default=900.0,
        help="send no further request of a write after this time [default: 900]",
    )
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    baseline: str | None = BASELINE
    clusters: ChosenClusters = group(ChosenClusters, all_clusters="follow every cluster (not with --cluster)")
    audit: Path | None = option(
        "--audit", section="Output", metavar="FILE", help="add one line of JSON to this file for every write"
    )
    report: Path | None = option(
        "--report",
        section="Output",
        metavar="FILE",
        help="keep the report of the last write in this file, for revert (with --all-clusters: a folder)",
    )


def run(args: RunArguments) -> Result:
    """Run until a signal: 0 after SIGTERM, 130 after SIGINT, 4 when the last write stayed incomplete."""
    from reconciler.features.service.run import run_service
    from reconciler.ports import SystemClock

    _check(args)
    return Result(exit=run_service(args, sys.stderr, as_json=output.log_format() == "json", clock=SystemClock()))


def _check(args: RunArguments) -> None:
    for name, value in (("--interval", args.interval), ("--deadline", args.deadline)):
        if not (math.isfinite(value) and 1.0 <= value <= _LONGEST):
            raise UsageError(f"{name} takes seconds from 1 to {_LONGEST:g}, not {value:g}")
    if not 0 <= args.port <= _MOST_PORT:
        raise UsageError(f"--port takes a number from 0 to {_MOST_PORT}, not {args.port}")
    args.clusters.check()
    if args.clusters.all_clusters and args.baseline is not None:
        require_reference(args.baseline)
    if args.clusters.all_clusters and args.report and not args.report.is_dir():
        raise UsageError(f"with --all-clusters, --report names a folder that exists, and {shown(str(args.report))} does not")
    if not args.apply and (args.audit or args.report):
        raise UsageError("--audit and --report are about writes, and without --apply there are none")
