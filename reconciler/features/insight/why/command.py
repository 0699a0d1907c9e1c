"""``kafka-quotas why``: why a client was throttled at a time, and what to do about it."""

from __future__ import annotations

import argparse
import datetime
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import entity_options, exit_codes, options, output
from reconciler.cli.arguments import JudgedTrafficArguments, typed
from reconciler.cli.traffic_options import (
    add_broker_model_options,
    add_known_clients_option,
    add_prometheus_login_options,
    add_reading_options,
    add_spark_options,
    backtest_options,
    prometheus_request,
)
from reconciler.errors import ManifestError, UsageError
from reconciler.text import shown

if TYPE_CHECKING:
    from reconciler.features.insight.why.explain import IncidentRequest
    from reconciler.features.insight.why.incident import IncidentReport
    from reconciler.model import Entity, MetricServer
    from reconciler.workflows import BacktestOptions

_AROUND: Final = datetime.timedelta(hours=1)
_FORMS: Final = ("%H:%M", "%H:%M:%S")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyArguments(JudgedTrafficArguments):
    """The command line of ``why``."""

    entity_name: tuple[str, ...]
    entity_names: tuple[str, ...]
    entity_defaults: tuple[str, ...]
    at: str | None
    since: str | None
    until: str | None
    timezone: str | None
    audit: tuple[str, ...]
    detailed_exitcode: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``why``."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=[],
        metavar="PATH",
        help="manifests in git, for the quotas of that time and the commits that set them [default: ., if it has manifests, and "
        "none with --bootstrap-server or --zookeeper]",
    )
    parser.add_argument(
        "--at", metavar="TIME", help='explain the incident at or nearest to this time, such as "14:03" or 2026-11-22T14:03:00Z'
    )
    parser.add_argument("--since", metavar="TIME", help="look from this time on [default: 1 h before --at or --until]")
    parser.add_argument("--until", metavar="TIME", help="look up to this time [default: 1 h after --at, else now]")
    parser.add_argument(
        "--timezone", metavar="TZ", help="read and print times without an offset in this time zone [default: --log-timezone]"
    )
    entity_options.add_entity_options(parser)
    group = options.section(parser, "Traffic")
    group.add_argument(
        "--traffic",
        action="append",
        default=[],
        metavar="SOURCE",
        help="look at this traffic: request logs or violation logs as [BROKER=]PATH, Parquet, a folder of compact, or "
        "prometheus+http(s)://HOST[:PORT][/PATH] (repeatable, also for several kinds) [default: spec.traffic of the Cluster "
        "manifest]",
    )
    group.add_argument(
        "--audit",
        action="append",
        default=[],
        metavar="FILE",
        help="take the applied commits from this file of apply --audit or run --audit (repeatable)",
    )
    add_prometheus_login_options(parser)
    add_known_clients_option(parser)
    add_reading_options(parser)
    add_spark_options(parser)
    add_broker_model_options(parser)
    options.add_cluster_options(parser)
    options.add_current_option(parser, "take quotas beside the manifests from this snapshot instead of the live cluster")
    options.add_detailed_exitcode_option(parser, "exit 2 when the client was throttled, or by computation would have been")
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> WhyArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(WhyArguments, namespace)


def run(args: WhyArguments) -> int:
    """Explain and print; 1 when it is not known whether the client was throttled."""
    from reconciler.features.insight.why.explain import explain_incident
    from reconciler.features.insight.why.incident import IncidentAnswer

    options.check_one_state(args, args.current)
    try:
        report = explain_incident(_request(args), progress=output.StderrProgress())
    except ManifestError as error:
        if error.findings:
            output.print_findings(args, error.findings, to_stdout=True)
        raise
    print_incident(args, report)
    if report.answer is IncidentAnswer.UNKNOWN:
        return exit_codes.NOT_DONE
    differs = report.answer is not IncidentAnswer.CLEAR
    return exit_codes.DIFFERENCES if args.detailed_exitcode and differs else exit_codes.DONE


def print_incident(args: WhyArguments, report: IncidentReport) -> None:
    """Print a report in the form of ``--format``."""
    from reconciler.features.insight.why.document import incident_to_json
    from reconciler.features.insight.why.text import incident_lines

    output.print_result(args, document=lambda: incident_to_json(report), lines=lambda: incident_lines(report))


def _request(args: WhyArguments) -> IncidentRequest:
    from reconciler.features.insight.report.reading import read_report_inputs
    from reconciler.features.insight.why.explain import IncidentRequest
    from reconciler.features.insight.why.past_quotas import QuotaSources

    client = _client(args)
    zone = _zone(args.timezone or args.log_timezone)
    at, since, until = _times(args, zone, now=datetime.datetime.now(datetime.UTC))
    runs = read_report_inputs(args.audit, ()).runs if args.audit else ()
    return IncidentRequest(
        client=client,
        at=at,
        since=since,
        until=until,
        zone=zone.key,
        quotas=QuotaSources(paths=args.paths, cluster=args.cluster, access=options.access(args, current=args.current), runs=runs),
        traffic=lambda server: tuple(_traffic(args, since, until, server)),
    )


def _client(args: WhyArguments) -> Entity:
    from reconciler.workflows import require_client

    if args.entity_defaults:
        raise UsageError("--defaults names a class of clients: name the client that was throttled with --name")
    client = entity_options.entity_of(args, may_be_empty=("client-id",))
    if client is None:
        raise UsageError("name a client: --name user=NAME --name client-id=NAME, or --name ip=ADDRESS")
    return require_client(client)[0]


def _traffic(
    args: WhyArguments, since: datetime.datetime, until: datetime.datetime, server: MetricServer | None
) -> Iterator[BacktestOptions]:
    """How each kind of traffic is read. A mapping is for the metrics of a server where there is one, else for files."""
    from reconciler.workflows import is_prometheus, traffic_by_kind

    servers = [argument for argument in args.traffic if is_prometheus(argument)]
    files = [argument for argument in args.traffic if not is_prometheus(argument)]
    is_read = bool(servers) or (server is not None and not files)
    times = {"since": since, "until": until} if is_read else {"since": None, "until": None}
    for kind in traffic_by_kind(files, is_mapped=bool(args.mapping) and not servers):
        yield backtest_options(args, traffic=kind, mapping=None if servers else args.mapping)
    for arguments in [[argument] for argument in servers] or [files]:
        prometheus = prometheus_request(
            arguments, match=args.match, http_config=args.http_config, store=args.traffic_store, server=server, **times
        )
        if prometheus is not None:
            yield backtest_options(args, traffic=(), mapping=args.mapping, prometheus=prometheus)


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"unknown time zone {shown(name)}: write a name such as UTC or Europe/Berlin") from None


def _times(
    args: WhyArguments, zone: zoneinfo.ZoneInfo, *, now: datetime.datetime
) -> tuple[datetime.datetime | None, datetime.datetime, datetime.datetime]:
    """``--at``, ``--since`` and ``--until``, UTC."""
    at, since, until = (
        None if text is None else parse_time(option, text, zone, now=now)
        for option, text in (("--at", args.at), ("--since", args.since), ("--until", args.until))
    )
    if at is None and since is None and until is None:
        raise UsageError('No time was given: pass --at TIME, such as --at "14:03", or --since TIME')
    end = until or min(now, at + _AROUND if at is not None else now)
    begin = since or (at or end) - _AROUND
    if at is not None and not begin <= at <= end:
        raise UsageError("--at is not between --since and --until, or lies in the future")
    if end <= begin:
        raise UsageError("--until is not later than --since")
    return at, begin, end


def parse_time(option: str, text: str, zone: zoneinfo.ZoneInfo, *, now: datetime.datetime) -> datetime.datetime:
    """A time with or without an offset, or of the last 24 hours when only the time of day is given. Raises ``UsageError``."""
    for form in _FORMS:
        try:
            clock = datetime.datetime.strptime(text, form).time()
        except ValueError:
            continue
        today = now.astimezone(zone).date()
        moment = datetime.datetime.combine(today, clock, tzinfo=zone)
        if moment > now:
            moment = datetime.datetime.combine(today - datetime.timedelta(days=1), clock, tzinfo=zone)
        return moment.astimezone(datetime.UTC)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        msg = f"{option} takes a time such as 14:03 or 2026-11-22T14:03:00Z, not {shown(text)}"
        raise UsageError(msg) from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(datetime.UTC)
