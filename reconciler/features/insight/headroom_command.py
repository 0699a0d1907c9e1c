"""``kafka-quotas headroom``: how near clients are to their limits now, and which of them brokers throttle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import every_cluster, exit_codes, option_groups, traffic_options
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import label_matcher, share
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.features.insight.observe import GroupLoad, Headroom
    from reconciler.formats import Json
    from reconciler.model import ClusterFailure

_WITHIN_S: Final = 7.0
"""How long all clusters together may take: a command for people who wait."""


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
    details: bool = option("--details", help="show each quota group on each of its brokers")
    owner: tuple[str, ...] = option("--owner", metavar="NAME", help="show only quotas that this owner declares (repeatable)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSource:
    """Where rates come from."""

    traffic: tuple[str, ...] = option(
        "--traffic",
        **traffic_options.TRAFFIC,
        help="read rates of prometheus+http(s)://HOST[:PORT][/PATH], or of an exporter's page, "
        "[BROKER=]metrics+http(s)://HOST:PORT/metrics (repeatable). Or of the last minute of request logs, recorder files and "
        "totals, [BROKER=]PATH [default: spec.traffic of the Cluster manifest]",
    )
    match: tuple[str, ...] = traffic_options.MATCH
    http_config: Path | None = traffic_options.HTTP_CONFIG


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
    connection: every_cluster.ChosenClusters = group(every_cluster.ChosenClusters)
    current: str | None = option_groups.CURRENT
    detailed_exitcode: bool = option_groups.detailed_exitcode("exit 2 when a group is above --over, or above its limit")
    format: str = option_groups.format_option()


def run(args: HeadroomArguments) -> Result:
    """Read rates and limits; exit 2 with ``--detailed-exitcode`` when a group is above."""
    from reconciler.features.insight.headroom_view import HEADROOM, headroom_lines

    args.connection.check(current=args.current)
    if args.connection.all_clusters:
        return _of_every_cluster(args)
    shown = args.shown
    headroom = _of_owners(_observe(args), shown.owner)
    above = _above(headroom, shown)
    groups = headroom.groups if shown.over is None else above
    return Result(
        exit=exit_codes.DIFFERENCES if above and args.detailed_exitcode else exit_codes.DONE,
        view=lambda: headroom_lines(headroom, top=shown.top, over=shown.over, details=shown.details),
        document=lambda: HEADROOM.write(replace(headroom, groups=groups[: shown.top])),
    )


def _above(headroom: Headroom, shown: ShownLoads) -> tuple[GroupLoad, ...]:
    return tuple(group for group in headroom.groups if group.is_above(1.0 if shown.over is None else shown.over))


def _of_owners(headroom: Headroom, owners: tuple[str, ...]) -> Headroom:
    """Return the groups and limits that these owners declare. Without owners, all of them."""
    if not owners:
        return headroom
    return replace(
        headroom,
        groups=tuple(group for group in headroom.groups if group.owner in owners),
        unused=tuple(limit for limit in headroom.unused if limit.owner in owners),
    )


def _of_every_cluster(args: HeadroomArguments) -> Result:
    """One list of the nearest groups of all clusters. A cluster that does not answer in time is named, and exit code 1."""
    from reconciler.documents import cluster_failure_to_json, clusters_to_json
    from reconciler.features.insight.headroom_view import HEADROOM, fleet_lines
    from reconciler.features.insight.observe import nearest_first, observe_cluster
    from reconciler.model import ClusterFailure
    from reconciler.workflows import Access, References, read_every

    given = {"--state": args.state != "current", "--traffic": args.source.traffic, "--match": args.source.match}
    given |= {"--http-config": args.source.http_config}
    if unusable := [name for name, value in given.items() if value]:
        raise UsageError(
            f"--all-clusters reads spec.traffic of each Cluster manifest, and the limits in effect: leave {unusable[0]} out"
        )
    wanted = every_cluster.Wanted(
        paths=args.paths or (".",), choice=args.connection, references=References(trusted=args.trusted_ref)
    )
    access, shown = Access(command_config=args.connection.command_config), args.shown
    read = read_every(every_cluster.load_every(wanted), lambda intent: observe_cluster(intent, access), within_s=_WITHIN_S)
    results = tuple(each if isinstance(each, ClusterFailure) else _of_owners(each, shown.owner) for each in read)
    known = [each for each in results if not isinstance(each, ClusterFailure)]
    above = any(_above(each, shown) for each in known)
    pairs = nearest_first(
        (each, group) for each in known for group in (each.groups if shown.over is None else _above(each, shown))
    )
    chosen = pairs[: shown.top]

    def document(each: Headroom | ClusterFailure) -> Json:
        if isinstance(each, ClusterFailure):
            return cluster_failure_to_json(each)
        return HEADROOM.write(replace(each, groups=tuple(group for of, group in chosen if of is each)))

    failed = any(isinstance(each, ClusterFailure) and not each.skipped for each in results)
    differs = exit_codes.DIFFERENCES if above and args.detailed_exitcode else exit_codes.DONE
    return Result(
        exit=exit_codes.NOT_DONE if failed else differs,
        view=lambda: fleet_lines(results, pairs, top=shown.top, details=shown.details),
        document=lambda: clusters_to_json(map(document, results)),
    )


def _observe(args: HeadroomArguments) -> Headroom:
    """Read the quota groups of one cluster. With a trusted reference, server, login and names are those of it."""
    from reconciler.features.insight.observe import observe
    from reconciler.features.insight.rate_sources import configured_rates
    from reconciler.workflows import Sources, Where, check_names

    check_names([args.state])
    access = args.connection.access(args.current)
    sources = Sources(Where(paths=args.paths, cluster=args.connection.cluster, access=access, trusted_ref=args.trusted_ref))
    view, source = sources.view(args.state), args.source
    spec, trusted = sources.cluster()
    configured = configured_rates(spec, trusted)
    rates = replace(
        configured,
        traffic=source.traffic or configured.traffic,
        match=tuple(map(label_matcher, source.match)),
        http_config=source.http_config,
    )
    if rates.is_recorded and (source.match or source.http_config):
        raise UsageError("--match and --http-config of headroom are for metrics, and --traffic names files: leave them out")
    return observe(view, sources.owners(), rates)
