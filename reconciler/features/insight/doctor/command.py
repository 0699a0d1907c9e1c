"""``kafka-quotas doctor``: checks of everything that the tool needs, or of a source of traffic, each with its remedy."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import ClusterArguments, typed
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
class DoctorArguments(ClusterArguments):
    """The command line of ``doctor``."""

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
        "paths",
        nargs="*",
        default=[],
        metavar="CLUSTER|PATH",
        help="check this Cluster manifest of the current folder, or these manifests [default: the current folder]",
    )
    options.section(parser, "Traffic").add_argument(
        "--traffic",
        action="append",
        default=[],
        metavar="SOURCE",
        help="examine this source instead: a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), pages of exporters "
        "([BROKER=]metrics+http(s)://HOST:PORT/metrics, repeatable), or files as backtest reads them (repeatable)",
    )
    add_prometheus_options(parser, hours=_HOURS, store=False)
    add_known_clients_option(parser)
    add_reading_options(parser)
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_current_option(parser, "take brokers, quotas and names of clients from this snapshot [default: none]")
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> DoctorArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(DoctorArguments, namespace)


def run(args: DoctorArguments) -> int:
    """Check and print; 0, or 1 for a check that failed. Of traffic: 1 for a finding at or above ``--fail-on``."""
    return _examine_traffic(args) if _asks_about_traffic(args) else _examine_everything(args)


def _asks_about_traffic(args: DoctorArguments) -> bool:
    """Whether an option makes sense for a source of traffic alone."""
    asked = (args.traffic, args.since, args.until, args.match, args.http_config, args.known_clients, args.mapping)
    return any(asked) or args.current is not None or args.trusted_ref is not None


def _examine_everything(args: DoctorArguments) -> int:
    from reconciler.features.insight.doctor.checkup import CheckupRequest, examine_everything
    from reconciler.features.insight.doctor.checkup_document import checkup_to_json
    from reconciler.features.insight.doctor.checkup_text import checkup_lines

    paths, cluster = args.paths or (".",), args.cluster
    if len(paths) == 1 and cluster is None and not Path(paths[0]).exists():
        paths, cluster = (".",), paths[0]
    request = CheckupRequest(paths=paths, cluster=cluster, access=options.access(args))
    checkup = examine_everything(request, progress=output.StderrProgress())
    output.print_result(args, document=lambda: checkup_to_json(checkup), lines=lambda: checkup_lines(checkup))
    return exit_codes.NOT_DONE if checkup.has_failed else exit_codes.DONE


def _examine_traffic(args: DoctorArguments) -> int:
    from reconciler.features.insight.doctor.health_document import traffic_health_to_json
    from reconciler.features.insight.doctor.health_text import traffic_health_lines
    from reconciler.features.insight.doctor.source_health import DoctorRequest, examine_traffic
    from reconciler.features.insight.headroom.rate_sources import is_page
    from reconciler.model import Severity
    from reconciler.workflows import References, configured_server, load_intent

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
    health = examine_traffic(request, now=now, progress=output.StderrProgress())
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
