"""``kafka-quotas doctor``: what a source of traffic shows, what is missing, and how to repair it."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.cli.traffic_options import (
    add_known_clients_option,
    add_prometheus_options,
    add_reading_options,
    prometheus_request,
)
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import CurrentState
    from reconciler.workflows import Intent

_HOURS: Final = 1
"""Long enough to see intervals and clients, and read in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorArguments(OutputArguments):
    """The command line of ``doctor``."""

    paths: tuple[str, ...]
    cluster: str | None
    current: str | None
    traffic: tuple[str, ...]
    since: datetime.datetime | None
    until: datetime.datetime | None
    match: tuple[str, ...]
    http_config: str | None
    known_clients: str | None
    log_timezone: str
    mapping: str | None
    max_unreadable: float
    fail_on: str
    trusted_ref: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``doctor``."""
    parser.add_argument(
        "paths", nargs="*", default=[], metavar="PATH", help="manifests that name clients and quotas [default: none]"
    )
    options.section(parser, "Traffic").add_argument(
        "--traffic",
        action="append",
        default=[],
        metavar="SOURCE",
        help="examine a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), pages of exporters "
        "([BROKER=]metrics+http(s)://HOST:PORT/metrics, repeatable), or files as backtest reads them (repeatable) "
        "[default: spec.traffic of the Cluster manifest]",
    )
    add_prometheus_options(parser, hours=_HOURS, store=False)
    add_known_clients_option(parser)
    add_reading_options(parser)
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_option(parser)
    options.add_current_option(parser, "take brokers, quotas and names of clients from this snapshot [default: none]")
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> DoctorArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(DoctorArguments, namespace)


def run(args: DoctorArguments) -> int:
    """Examine and print; 0, or 1 for a finding at or above ``--fail-on``."""
    from reconciler.documents import traffic_health_to_json
    from reconciler.model import Severity
    from reconciler.render import traffic_health_lines
    from reconciler.workflows import DoctorRequest, References, configured_server, examine_traffic, is_page, load_intent

    now = datetime.datetime.now(datetime.UTC)
    intent = None
    if args.paths or args.trusted_ref is not None:
        references = References(trusted=args.trusted_ref)
        intent = load_intent(args.paths or (".",), cluster=args.cluster, references=references)
    of_pages = any(map(is_page, args.traffic))
    server = prometheus_request(
        args.traffic,
        since=args.since,
        until=args.until,
        match=args.match,
        http_config=None if of_pages else args.http_config,
        store=None,
        server=configured_server(intent.spec, intent.trusted) if intent is not None else None,
    )
    if server is None and not args.traffic:
        raise UsageError("No traffic is given. Pass --traffic, or PATH of a Cluster manifest that has spec.traffic")
    if server is not None and args.since is None:
        server = replace(server, since=server.until - datetime.timedelta(hours=_HOURS))
    request = DoctorRequest(
        traffic=args.traffic,
        prometheus=server,
        intent=intent,
        current=_current(args, intent),
        known_clients=Path(args.known_clients) if args.known_clients else None,
        mapping=Path(args.mapping) if args.mapping else None,
        http_config=Path(args.http_config) if args.http_config else None,
        log_timezone=args.log_timezone,
        max_unreadable=args.max_unreadable,
    )
    health = examine_traffic(request, now=now, progress=output.StderrProgress(args))
    output.print_result(args, document=lambda: traffic_health_to_json(health), lines=lambda: traffic_health_lines(health))
    limit = Severity(args.fail_on)
    return exit_codes.NOT_DONE if any(finding.severity.at_least(limit) for finding in health.findings) else exit_codes.DONE


def _current(args: DoctorArguments, intent: Intent | None) -> CurrentState | None:
    if args.current is None:
        return None
    from reconciler.model import ClusterSpec
    from reconciler.workflows import read_state, snapshot_reader

    trusted = intent.trusted.files if intent is not None and intent.trusted is not None else None
    return read_state(intent.spec if intent is not None else ClusterSpec(), snapshot_reader(args.current, trusted=trusted))
