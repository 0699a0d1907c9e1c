"""``kafka-quotas headroom``: how near clients are to their limits now, and which of them brokers throttle."""

from __future__ import annotations

import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, option_groups, traffic_options
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import label_matcher
from reconciler.errors import TrafficError, UsageError

if TYPE_CHECKING:
    from reconciler.features.insight.observe import Headroom, HeadroomReader, OwnerLoad
    from reconciler.render import Block

_INTERVAL_S: Final = 5.0
_SHORTEST_S: Final = 0.2


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _interval(text: str) -> float:
    seconds = float(text)
    if not _SHORTEST_S <= seconds <= 86_400:
        raise ArgumentTypeError(f"{text!r} is not an interval: write seconds from {_SHORTEST_S} to 86400")
    return seconds


def _over(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1000:
        raise ArgumentTypeError(f"{text!r} is not a share: write a percentage such as 80%, or a number such as 0.8")
    return share


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLoads:
    """Which quota groups are shown, and how."""

    watch: bool = option("--watch", help="refresh in place on a terminal, until Ctrl-C")
    interval: float | None = option(
        "--interval", type=_interval, metavar="SECONDS", help="with --watch: read again after this time [default: 5]"
    )
    top: int | None = option("--top", type=_count, metavar="N", help="show only the N that are nearest to their limits")
    over: float | None = option(
        "--over", type=_over, metavar="SHARE", help="show only those above this share of the limit, such as 80%%"
    )
    by: str = option(
        "--by",
        choices=("group", "owner"),
        default="group",
        metavar="WHAT",
        help="print a row for each group or owner [default: group]",
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
    known_clients: Path | None = traffic_options.KNOWN_CLIENTS
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
    """Read, once or again and again; exit 2 with ``--detailed-exitcode`` when a group is above."""
    from reconciler.cli.screen import can_refresh, watch_screen
    from reconciler.features.insight.headroom_view import HEADROOM, HeadroomAnswer
    from reconciler.features.insight.observe import HeadroomRequest, open_headroom
    from reconciler.workflows import Sources, Where, check_names

    if args.state == "cluster":
        access = replace(args.connection.access(), current=args.current)
    else:
        access = args.connection.access(args.current)
    _check(args)
    check_names([args.state])
    cluster, source, shown = args.connection.cluster, args.source, args.shown
    sources = Sources(Where(paths=args.paths, cluster=cluster, access=access, trusted_ref=args.trusted_ref))
    request = HeadroomRequest(
        traffic=source.traffic,
        match=tuple(map(label_matcher, source.match)),
        http_config=source.http_config,
        mapping=source.mapping,
        known_clients=source.known_clients,
    )
    reader = open_headroom(sources, args.state, request)
    try:
        if shown.watch and can_refresh():
            watch_screen(_drawings(shown, reader), interval_s=shown.interval or _INTERVAL_S)
        headroom = reader.read()
    finally:
        reader.close()
    asked = _asked(shown, headroom)
    above = [each for each in asked.groups if each.is_above(_above(shown))]
    groups = asked.groups if shown.over is None else tuple(above)
    document = replace(asked, groups=groups[: shown.top])
    return Result(
        exit=exit_codes.DIFFERENCES if args.detailed_exitcode and above else exit_codes.DONE,
        view=lambda: _blocks(shown, headroom),
        document=lambda: HEADROOM.write(HeadroomAnswer(headroom=document, owners=_owners(shown, asked))),
    )


def _check(args: HeadroomArguments) -> None:
    if args.shown.interval is not None and not args.shown.watch:
        raise UsageError("--interval is for --watch only")
    if args.shown.watch and args.format != "text":
        raise UsageError("--watch shows text: leave out --format json, and repeat the command instead")
    if args.shown.watch and args.detailed_exitcode:
        raise UsageError("--watch ends with Ctrl-C, so --detailed-exitcode has no meaning with it")


def _above(shown: ShownLoads) -> float:
    return 1.0 if shown.over is None else shown.over


def _asked(shown: ShownLoads, headroom: Headroom) -> Headroom:
    """Without the groups of other owners."""
    if not shown.owner:
        return headroom
    return replace(headroom, groups=tuple(each for each in headroom.groups if each.owner in shown.owner))


def _owners(shown: ShownLoads, headroom: Headroom) -> tuple[OwnerLoad, ...]:
    from reconciler.features.insight.observe import by_owner

    return by_owner(headroom.groups, above=_above(shown))


def _blocks(shown: ShownLoads, headroom: Headroom) -> Sequence[Block]:
    from reconciler.features.insight.headroom_view import headroom_lines, owner_lines

    asked = _asked(shown, headroom)
    if shown.by == "owner":
        return owner_lines(asked, _owners(shown, asked), top=shown.top, above=_above(shown))
    if shown.over is None:
        return headroom_lines(asked, top=shown.top, above=1.0)
    over = shown.over
    near = replace(asked, groups=tuple(each for each in asked.groups if each.is_above(over)))
    return headroom_lines(near, top=shown.top, above=over, left_out=len(asked.limited) - len(near.limited))


def _drawings(shown: ShownLoads, reader: HeadroomReader) -> Callable[[], Sequence[Block]]:
    """Reads for a screen: a source that fails for a while is named above what was read last."""
    last: list[Headroom] = []

    def read() -> Sequence[Block]:
        from reconciler.render import line

        problem = ""
        try:
            last[:] = [reader.read()]
        except TrafficError as error:
            if not last:
                raise
            problem = str(error)
        warning = [line(f"{time.strftime('%H:%M:%S')}: {problem}")] if problem else []
        return [*warning, *_blocks(shown, last[0])]

    return read
