"""``kafka-quotas headroom``: how near clients are to their limits now, and which of them brokers throttle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, option_groups, traffic_options
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import label_matcher, share

if TYPE_CHECKING:
    from reconciler.features.insight.observe import Headroom


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLoads:
    """Which quota groups are shown, and how."""

    top: int | None = option("--top", type=_count, metavar="N", help="show only the N that are nearest to their limits")
    over: float | None = option(
        "--over", type=share, metavar="SHARE", help="show only those above this share of the limit, such as 80%%"
    )
    owner: tuple[str, ...] = option("--owner", metavar="NAME", help="show only quotas that this owner declares (repeatable)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSource:
    """Where rates come from."""

    traffic: tuple[str, ...] = traffic_options.traffic_option(
        "read rates of a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), or of an exporter's page "
        "([BROKER=]metrics+http(s)://HOST:PORT/metrics, repeatable) [default: spec.traffic of the Cluster manifest]"
    )
    match: tuple[str, ...] = traffic_options.MATCH
    http_config: Path | None = traffic_options.HTTP_CONFIG
    mapping: Path | None = traffic_options.mapping_option("read other metrics, as in this TrafficMapping")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomArguments:
    """The command line of ``headroom``."""

    paths: tuple[str, ...] = option_groups.connection_paths(", and the owners")
    state: str = option(
        "--state",
        default="current",
        metavar="STATE",
        help="take the limits of current (the cluster, or the snapshot of --current), manifests, planned, or the file of a "
        "snapshot [default: current]",
    )
    shown: ShownLoads = group(ShownLoads)
    source: RateSource = group(RateSource)
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.CURRENT
    detailed_exitcode: bool = option_groups.detailed_exitcode("exit 2 when a group is above --over, or above its limit")
    format: str = option_groups.format_option()


def run(args: HeadroomArguments) -> Result:
    """Read rates and limits; exit 2 with ``--detailed-exitcode`` when a group is above."""
    from reconciler.features.insight.headroom_view import HEADROOM, headroom_lines

    shown = args.shown
    headroom = _observe(args)
    if shown.owner:
        headroom = replace(headroom, groups=tuple(group for group in headroom.groups if group.owner in shown.owner))
    above = [group for group in headroom.groups if group.is_above(1.0 if shown.over is None else shown.over)]
    groups = headroom.groups if shown.over is None else tuple(above)
    return Result(
        exit=exit_codes.DIFFERENCES if above and args.detailed_exitcode else exit_codes.DONE,
        view=lambda: headroom_lines(headroom, top=shown.top, over=shown.over),
        document=lambda: HEADROOM.write(replace(headroom, groups=groups[: shown.top])),
    )


def _observe(args: HeadroomArguments) -> Headroom:
    """With a trusted reference, server, login, mapping and names are those of the reference."""
    from reconciler.features.insight.observe import observe
    from reconciler.features.insight.rate_sources import RateRequest
    from reconciler.features.prometheus import trusted_reader
    from reconciler.workflows import (
        Sources,
        Where,
        check_names,
        configured_server,
        configured_traffic,
        names_of,
        read_trusted_mapping,
    )

    check_names([args.state])
    access = args.connection.access(args.current)
    sources = Sources(Where(paths=args.paths, cluster=args.connection.cluster, access=access, trusted_ref=args.trusted_ref))
    view, source = sources.view(args.state), args.source
    spec, trusted = sources.cluster()
    rates = RateRequest(
        traffic=source.traffic or configured_traffic(spec, trusted),
        server=configured_server(spec, trusted),
        match=tuple(map(label_matcher, source.match)),
        http_config=source.http_config,
        mapping=read_trusted_mapping(source.mapping, trusted),
        names=names_of(view.entities),
        read_file=trusted_reader(trusted),
    )
    return observe(view, sources.owners(), rates)
