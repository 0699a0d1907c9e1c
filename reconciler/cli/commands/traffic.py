"""``kafka-quotas traffic``: what producers of recorded traffic need. Its one action checks their rows."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.cli.traffic_options import add_spark_options, add_time_options, share
from reconciler.errors import UsageError

_ACTIONS: Final = {
    "check": (
        "Check rows against the canonical traffic schema",
        "Check rows of a producer against the canonical traffic schema: columns, types, times and names. Exit 1 on a failure.",
    ),
}
"""Each action with its summary and its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficArguments(OutputArguments):
    """The command line of ``traffic``."""

    action: str
    traffic: tuple[str, ...]
    mapping: str | None
    since: datetime.datetime | None
    until: datetime.datetime | None
    max_unreadable: float
    fail_on: str
    master: str | None
    remote: str | None
    memory: str
    conf: tuple[str, ...]
    properties_file: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``check``, with its options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", prog=parser.prog, title="Actions")
    for name, (summary, description) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary, description=description, add_help=False)
        group = options.section(action, "Traffic")
        group.add_argument(
            "--traffic",
            action="append",
            default=[],
            metavar="SOURCE",
            help="check these rows: Parquet files or folders, with --mapping also CSV. Spark reads SCHEME://... and table:NAME "
            "(repeatable)",
        )
        group.add_argument("--mapping", metavar="FILE", help="check the rows that this TrafficMapping makes of other columns")
        add_time_options(group, "check rows after this time, with its offset [default: all]")
        group.add_argument(
            "--max-unreadable",
            type=share,
            default=0.01,
            metavar="SHARE",
            help="fail when the backtest cannot read more than this share of the rows, such as 0.05 or 5%% [default: 1%%]",
        )
        add_spark_options(action)
        options.add_fail_on_option(action)
        options.add_output_options(action)
    options.add_help_option(parser)


def parse(namespace: argparse.Namespace) -> TrafficArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(TrafficArguments, namespace)


def run(args: TrafficArguments) -> int:
    """Check and print; 0, or 1 for a check that is as bad as ``--fail-on``."""
    from reconciler.documents import contract_to_json
    from reconciler.model import Severity
    from reconciler.render import contract_lines
    from reconciler.workflows import TrafficCheckRequest, check_traffic

    if not args.traffic:
        raise UsageError("No traffic is given. Pass --traffic")
    request = TrafficCheckRequest(
        traffic=args.traffic,
        mapping=Path(args.mapping) if args.mapping else None,
        since=args.since,
        until=args.until,
        max_unreadable=args.max_unreadable,
        master=args.master,
        remote=args.remote,
        memory=args.memory,
        spark_conf=args.conf,
        spark_properties=Path(args.properties_file) if args.properties_file else None,
    )
    report = check_traffic(request, now=datetime.datetime.now(datetime.UTC), progress=output.StderrProgress(args))
    output.print_result(args, document=lambda: contract_to_json(report), lines=lambda: contract_lines(report))
    return exit_codes.NOT_DONE if report.fails(Severity(args.fail_on)) else exit_codes.DONE
