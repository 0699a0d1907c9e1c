"""``kafka-quotas doctor``: checks of everything that the tool needs, or of a source of metrics, each with its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.cli import exit_codes, option_groups, output, traffic_options
from reconciler.cli.declaration import argument, group, option
from reconciler.cli.results import Result
from reconciler.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorArguments:
    """The command line of ``doctor``."""

    paths: tuple[str, ...] = argument(
        "CLUSTER|PATH",
        nargs="*",
        default=[],
        help="check this Cluster manifest of the current folder, or these manifests [default: the current folder]",
    )
    traffic: tuple[str, ...] = option(
        "--traffic",
        **traffic_options.TRAFFIC,
        help="check this source instead: a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), or pages of exporters "
        "([BROKER=]metrics+http(s)://HOST:PORT/metrics, repeatable)",
    )
    match: tuple[str, ...] = traffic_options.MATCH
    http_config: Path | None = traffic_options.HTTP_CONFIG
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    format: str = option_groups.format_option()


def run(args: DoctorArguments) -> Result:
    """Check; exit 1 for a check that failed."""
    from reconciler.features.insight.checkup import examine_everything, examine_source
    from reconciler.features.insight.doctor_views import CHECKUP, checkup_lines
    from reconciler.features.insight.rate_sources import RateRequest

    paths, cluster = args.paths or (".",), args.connection.cluster
    if len(paths) == 1 and cluster is None and not Path(paths[0]).exists():
        paths, cluster = (".",), paths[0]
    with output.LiveProgress() as progress:
        if args.traffic:
            match = tuple(map(traffic_options.label_matcher, args.match))
            request = RateRequest(traffic=args.traffic, match=match, http_config=args.http_config)
            checkup = examine_source(args.paths and paths, cluster, request)
        elif args.match or args.http_config:
            raise UsageError("--match and --http-config are for --traffic: give it, too")
        else:
            checkup = examine_everything(paths, cluster, args.connection.access(), progress=progress)
    return Result(
        exit=exit_codes.NOT_DONE if checkup.has_failed else exit_codes.DONE,
        view=lambda: checkup_lines(checkup),
        document=lambda: CHECKUP.write(checkup),
    )
