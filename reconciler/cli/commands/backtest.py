"""``kafka-quotas backtest``: replay recorded traffic against the current and the proposed quotas."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output
from reconciler.errors import ManifestError

if TYPE_CHECKING:
    from reconciler.model.state import CurrentState
    from reconciler.workflows.plan import Intent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``backtest``."""
    options.add_path_argument(parser)
    parser.add_argument("--cluster", metavar="NAME", help="the Cluster document to use; not needed when there is exactly one")
    parser.add_argument(
        "--traffic",
        action="append",
        required=True,
        metavar="[BROKER=]PATH",
        help="request logs (kafka.request.logger at DEBUG) of one broker: a file, or a folder with rotated and gzipped files; or "
        "Parquet in the normal form; or a folder that compact made. Repeatable. Without BROKER= the id of a log's broker is "
        "taken from a name such as node-3 or broker-3 in the path, else counted from 0",
    )
    parser.add_argument(
        "--current", metavar="FILE", help="snapshot of the quotas that hold now; without it there is no comparison"
    )
    parser.add_argument(
        "--kafka-version", metavar="V", help="model this broker release (default: the snapshot's, else 3.8 and newer)"
    )
    parser.add_argument("--exact", action="store_true", help="judge every single request, not sums of whole seconds")
    parser.add_argument(
        "--requests", metavar="FILE", help="also write one JSON line a request, in the order of charging; implies --exact"
    )
    parser.add_argument(
        "--log-timezone", default="UTC", metavar="TZ", help="of log times without an offset (default: %(default)s)"
    )
    parser.add_argument("--master", default="local[*]", metavar="URL", help="where Spark runs (default: %(default)s)")
    parser.add_argument("--memory", default="2g", metavar="SIZE", help="memory of Spark's driver (default: %(default)s)")
    options.add_fail_on_option(parser)
    options.add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Replay and print; 0, or 1 when a finding is at or above ``--fail-on``."""
    from reconciler.model.finding import Severity
    from reconciler.render.backtest_document import backtest_to_json
    from reconciler.render.backtest_text import backtest_lines
    from reconciler.workflows.backtest import BacktestOptions, backtest, propose
    from reconciler.workflows.plan import load_intent

    limit = Severity(args.fail_on)
    try:
        intent = load_intent(args.paths, cluster=args.cluster)
    except ManifestError as error:
        output.print_findings(args, error.findings, to_stdout=False)
        raise
    chosen = BacktestOptions(
        traffic=tuple(args.traffic),
        kafka_version=args.kafka_version,
        master=args.master,
        memory=args.memory,
        log_timezone=args.log_timezone,
        requests=Path(args.requests) if args.requests else None,
        exact=args.exact,
    )
    proposal = propose(intent.desired, _current(args, intent), intent.spec)
    report = backtest(proposal, chosen, progress=output.StderrProgress(args))
    output.print_result(args, document=lambda: backtest_to_json(report), lines=lambda: backtest_lines(report))
    stopped = any(finding.severity.at_least(limit) for finding in report.findings)
    return exit_codes.NOT_DONE if stopped else exit_codes.DONE


def _current(args: argparse.Namespace, intent: Intent) -> CurrentState | None:
    if args.current is None:
        return None
    from reconciler.workflows.connect import check_cluster_id, snapshot_reader

    state = snapshot_reader(args.current).current_state()
    check_cluster_id(intent.spec, state.cluster)
    return state
