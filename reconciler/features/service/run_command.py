"""``kafka-quotas run``: the long-running reconciler, for a service manager."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from reconciler.cli import exit_codes, options, writing
from reconciler.cli.arguments import typed
from reconciler.errors import UsageError
from reconciler.text import shown

_LONGEST: float = 86_400.0
_MOST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The command line of ``run``."""

    log_format: str
    paths: tuple[str, ...]
    cluster: str | None
    all_clusters: bool
    parallel: int
    bootstrap_server: str | None
    zookeeper: str | None
    command_config: str | None
    trusted_ref: str | None
    apply: bool
    baseline: str | None
    interval: float
    jitter: float
    poll: float
    longest_retry: float
    address: str
    port: int
    audit: str | None
    report: str | None
    deadline: float
    fail_on: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``run``."""
    options.add_path_argument(parser)
    parser.add_argument("--apply", action="store_true", help="write the changes, under the guards [default: only report them]")
    service = options.section(parser, "Service")
    service.add_argument(
        "--interval",
        metavar="SECONDS",
        type=float,
        default=300.0,
        help="read the cluster at this interval [default: %(default)g]",
    )
    service.add_argument(
        "--jitter", metavar="SHARE", type=float, default=0.1, help="add up to this share of the interval [default: %(default)g]"
    )
    service.add_argument(
        "--poll", metavar="SECONDS", type=float, default=5.0, help="look at the files at this interval [default: %(default)g]"
    )
    service.add_argument(
        "--longest-retry",
        metavar="SECONDS",
        type=float,
        default=300.0,
        help="let the waits after failures grow up to this [default: %(default)g]",
    )
    service.add_argument(
        "--address", metavar="HOST", default="127.0.0.1", help="serve metrics and health here [default: %(default)s]"
    )
    service.add_argument(
        "--port",
        metavar="PORT",
        type=int,
        default=9746,
        help="use this port, or with 0 a free one, which is printed [default: %(default)s]",
    )
    writing.add_deadline_option(parser, "send no further request of one write after this time", title="Safety")
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_baseline_option(parser)
    options.add_cluster_options(parser)
    options.add_all_clusters_option(parser, "follow")
    options.add_parallel_option(parser)
    files = options.section(parser, "Output")
    files.add_argument("--audit", metavar="FILE", help="add one line of JSON to this file for every write")
    files.add_argument(
        "--report",
        metavar="FILE",
        help="keep the report of the last write in this file, for revert (with --all-clusters: a folder)",
    )
    options.add_diagnosis_options(parser)


def parse(namespace: argparse.Namespace) -> RunArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(RunArguments, namespace)


def run(args: RunArguments) -> int:
    """Run until a signal: 0 after SIGTERM, 130 after SIGINT, 4 when the last write stayed incomplete."""
    import signal

    from reconciler.features.service import LogFormat, Pace, RunSettings, run_service
    from reconciler.model import Severity
    from reconciler.workflows import SystemClock

    _check(args)
    pace = Pace(
        interval=args.interval,
        jitter=args.jitter,
        poll=args.poll,
        first_retry=min(5.0, args.longest_retry),
        longest_retry=args.longest_retry,
    )
    settings = RunSettings(
        paths=tuple(args.paths),
        cluster=args.cluster,
        all_clusters=args.all_clusters,
        parallel=options.check_parallel(args.parallel),
        access=options.access(args),
        trusted_ref=args.trusted_ref,
        baseline=args.baseline,
        fail_on=Severity(args.fail_on),
        applies=args.apply,
        run_seconds=args.deadline,
        audit=Path(args.audit) if args.audit else None,
        report=Path(args.report) if args.report else None,
        pace=pace,
        host=args.address,
        port=args.port,
        log_format=LogFormat(args.log_format),
    )
    end = run_service(settings, sys.stderr, clock=SystemClock())
    if end.is_partial:
        return exit_codes.PARTIAL
    return exit_codes.INTERRUPTED if end.signal == signal.SIGINT else exit_codes.DONE


def _check(args: RunArguments) -> None:
    for name, least in (("interval", 1.0), ("poll", 0.1), ("longest_retry", 1.0), ("deadline", 1.0)):
        value = getattr(args, name)
        if not (math.isfinite(value) and least <= value <= _LONGEST):
            raise UsageError(f"--{name.replace('_', '-')} takes seconds from {least:g} to {_LONGEST:g}, not {value:g}")
    if not 0 <= args.jitter <= 1:
        raise UsageError(f"--jitter takes a share from 0 to 1, not {args.jitter:g}")
    if not 0 <= args.port <= _MOST_PORT:
        raise UsageError(f"--port takes a number from 0 to {_MOST_PORT}, not {args.port}")
    options.check_all_clusters(
        all_clusters=args.all_clusters, cluster=args.cluster, bootstrap_server=args.bootstrap_server, zookeeper=args.zookeeper
    )
    options.check_baseline(args.baseline, all_clusters=args.all_clusters)
    if args.all_clusters and args.report and not Path(args.report).is_dir():
        raise UsageError(f"with --all-clusters, --report names a folder that exists, and {shown(args.report)} does not")
    if not args.apply and (args.audit or args.report):
        raise UsageError("--audit and --report are about writes, and without --apply there are none")
