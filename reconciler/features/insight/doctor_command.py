"""``kafka-quotas doctor``: checks of everything that the tool needs, or of a source of traffic, each with its remedy."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.cli import exit_codes, option_groups, output, traffic_options
from reconciler.cli.declaration import argument, group
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import prometheus_request
from reconciler.errors import UsageError

_HOURS: Final = 1
"""Long enough to see intervals and clients, and read in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedSource:
    """A source of traffic, and how it is read."""

    traffic: tuple[str, ...] = traffic_options.traffic_option(
        "examine this source instead: a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), or pages of exporters "
        "([BROKER=]metrics+http(s)://HOST:PORT/metrics, repeatable)"
    )
    since: datetime.datetime | None = traffic_options.since_option(
        f"read samples of Prometheus after this time [default: {_HOURS} h before --until]"
    )
    until: datetime.datetime | None = traffic_options.UNTIL
    match: tuple[str, ...] = traffic_options.MATCH
    http_config: Path | None = traffic_options.HTTP_CONFIG
    mapping: Path | None = traffic_options.mapping_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorArguments:
    """The command line of ``doctor``."""

    paths: tuple[str, ...] = argument(
        "CLUSTER|PATH",
        nargs="*",
        default=[],
        help="check this Cluster manifest of the current folder, or these manifests [default: the current folder]",
    )
    source: ExaminedSource = group(ExaminedSource)
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.current("take brokers, quotas and names of clients from this snapshot [default: none]")
    format: str = option_groups.format_option()


def run(args: DoctorArguments) -> Result:
    """Check; exit 1 for a check that failed. Of traffic: 1 for a finding at or above ``--fail-on``."""
    source = args.source
    of_traffic = (source.traffic, source.since, source.until, source.match, source.http_config)
    if any(of_traffic) or source.mapping or args.current is not None or args.trusted_ref is not None:
        return _examine_traffic(args)
    return _examine_everything(args)


def _examine_everything(args: DoctorArguments) -> Result:
    from reconciler.features.insight.checkup import examine_everything
    from reconciler.features.insight.doctor_views import CHECKUP, checkup_lines

    paths, cluster = args.paths or (".",), args.connection.cluster
    if len(paths) == 1 and cluster is None and not Path(paths[0]).exists():
        paths, cluster = (".",), paths[0]
    with output.LiveProgress() as progress:
        checkup = examine_everything(paths, cluster, args.connection.access(), progress=progress)
    return Result(
        exit=exit_codes.NOT_DONE if checkup.has_failed else exit_codes.DONE,
        view=lambda: checkup_lines(checkup),
        document=lambda: CHECKUP.write(checkup),
    )


def _examine_traffic(args: DoctorArguments) -> Result:
    from reconciler.features.insight.doctor_views import TRAFFIC_HEALTH, traffic_health_lines
    from reconciler.features.insight.rate_sources import is_page
    from reconciler.features.insight.traffic_health import DoctorRequest, examine_traffic
    from reconciler.model import ClusterSpec, Severity
    from reconciler.workflows import References, configured_server, load_intent, read_state, snapshot_reader

    source = args.source
    now = datetime.datetime.now(datetime.UTC)
    intent = None
    if args.paths or args.trusted_ref is not None:
        references = References(trusted=args.trusted_ref)
        intent = load_intent(args.paths or (".",), cluster=args.connection.cluster, references=references)
    of_pages = any(map(is_page, source.traffic))
    server = prometheus_request(
        source.traffic,
        since=source.since,
        until=source.until,
        match=source.match,
        http_config=None if of_pages else source.http_config,
        store=None,
        server=configured_server(intent.spec, intent.trusted) if intent is not None else None,
    )
    if server is None and not source.traffic:
        raise UsageError("No traffic is given. Pass --traffic, or PATH of a Cluster manifest that has spec.traffic")
    if server is not None and source.since is None:
        server = replace(server, since=server.until - datetime.timedelta(hours=_HOURS))
    current = None
    if args.current is not None:
        trusted = intent.trusted.files if intent is not None and intent.trusted is not None else None
        spec = intent.spec if intent is not None else ClusterSpec()
        current = read_state(spec, snapshot_reader(args.current, trusted=trusted))
    request = DoctorRequest(
        traffic=source.traffic,
        prometheus=server,
        intent=intent,
        current=current,
        mapping=source.mapping,
        http_config=source.http_config,
    )
    with output.LiveProgress() as progress:
        health = examine_traffic(request, now=now, progress=progress)
    limit = Severity(args.fail_on)
    fails = any(finding.severity.at_least(limit) for finding in health.findings)
    return Result(
        exit=exit_codes.NOT_DONE if fails else exit_codes.DONE,
        view=lambda: traffic_health_lines(health),
        document=lambda: TRAFFIC_HEALTH.write(health),
    )
