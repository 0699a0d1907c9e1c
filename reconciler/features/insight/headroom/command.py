"""``kafka-quotas headroom``: how near clients are to their limits now, and which of them brokers throttle."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import ClusterArguments, typed
from reconciler.cli.traffic_options import add_known_clients_option, add_prometheus_login_options, label_matcher
from reconciler.errors import ManifestError, TrafficError, UsageError

if TYPE_CHECKING:
    from reconciler.features.insight.headroom.loads import Headroom, OwnerLoad
    from reconciler.features.insight.headroom.reading import HeadroomReader
    from reconciler.render import Block

_INTERVAL_S: Final = 5.0
_SHORTEST_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomArguments(ClusterArguments):
    """The command line of ``headroom``."""

    current: str | None
    state: str
    trusted_ref: str | None
    fail_on: str
    traffic: tuple[str, ...]
    match: tuple[str, ...]
    http_config: str | None
    known_clients: str | None
    mapping: str | None
    log_timezone: str
    watch: bool
    interval: float | None
    top: int | None
    over: float | None
    by: str
    owner: tuple[str, ...]
    detailed_exitcode: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``headroom``."""
    options.add_connection_path_argument(parser, also=", and the owners")
    parser.add_argument(
        "--state",
        default="current",
        metavar="STATE",
        help="take the limits of current (the cluster, or the snapshot of --current), manifests, planned, or the file of a "
        "snapshot [default: %(default)s]",
    )
    parser.add_argument("--watch", action="store_true", help="refresh in place on a terminal, until Ctrl-C")
    parser.add_argument(
        "--interval", type=_interval, metavar="SECONDS", help="with --watch: read again after this time [default: 5]"
    )
    parser.add_argument("--top", type=_count, metavar="N", help="show only the N that are nearest to their limits")
    parser.add_argument("--over", type=_over, metavar="SHARE", help="show only those above this share of the limit, such as 80%%")
    parser.add_argument(
        "--by",
        choices=("group", "owner"),
        default="group",
        metavar="WHAT",
        help="print a row for each group or owner [default: group]",
    )
    parser.add_argument(
        "--owner", action="append", default=[], metavar="NAME", help="show only quotas that this owner declares (repeatable)"
    )
    traffic = options.section(parser, "Traffic")
    traffic.add_argument(
        "--traffic",
        action="append",
        default=[],
        metavar="SOURCE",
        help="read rates of a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), of an exporter's page "
        "([BROKER=]metrics+http(s)://HOST:PORT/metrics, repeatable), or the last moment of recorded traffic (PATH) "
        "[default: spec.traffic of the Cluster manifest]",
    )
    add_prometheus_login_options(parser, store=False)
    add_known_clients_option(parser)
    traffic.add_argument(
        "--mapping",
        metavar="FILE",
        help="read other metrics, or files with other columns, as in this TrafficMapping",
    )
    traffic.add_argument(
        "--log-timezone",
        default="UTC",
        metavar="TZ",
        help="read times of logs without an offset in this time zone [default: %(default)s]",
    )
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_current_option(parser, "read this snapshot instead of the live cluster")
    options.add_detailed_exitcode_option(parser, "exit 2 when a group is above --over, or above its limit")
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> HeadroomArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(HeadroomArguments, namespace)


def run(args: HeadroomArguments) -> int:
    """Read and print, once or again and again; 2 with ``--detailed-exitcode`` when a group is above."""
    from reconciler.cli.screen import can_refresh, watch_screen
    from reconciler.features.insight.headroom.reading import HeadroomRequest, open_headroom
    from reconciler.model import Severity
    from reconciler.workflows import Sources, Where, check_names

    _check(args)
    check_names([args.state])
    where = Where(
        paths=tuple(args.paths),
        cluster=args.cluster,
        access=options.access(args, current=args.current),
        trusted_ref=args.trusted_ref,
        fail_on=Severity(args.fail_on),
    )
    sources = Sources(where)
    request = HeadroomRequest(
        traffic=args.traffic,
        match=tuple(map(label_matcher, args.match)),
        http_config=_path(args.http_config),
        mapping=_path(args.mapping),
        known_clients=_path(args.known_clients),
        log_timezone=args.log_timezone,
    )
    try:
        reader = open_headroom(sources, args.state, request)
    except ManifestError as error:
        if error.findings:
            output.print_findings(args, error.findings, to_stdout=False)
        raise
    try:
        if args.watch and can_refresh():
            watch_screen(_drawings(args, reader), interval_s=args.interval or _INTERVAL_S)
        headroom = reader.read()
    finally:
        reader.close()
    _print(args, headroom)
    above = any(group.is_above(_above(args)) for group in _asked(args, headroom).groups)
    return exit_codes.DIFFERENCES if args.detailed_exitcode and above else exit_codes.DONE


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _check(args: HeadroomArguments) -> None:
    if args.state != "cluster":
        options.check_one_state(args, args.current)
    if args.interval is not None and not args.watch:
        raise UsageError("--interval is for --watch only")
    if args.watch and args.format != "text":
        raise UsageError("--watch shows text: leave out --format json, and repeat the command instead")
    if args.watch and args.detailed_exitcode:
        raise UsageError("--watch ends with Ctrl-C, so --detailed-exitcode has no meaning with it")


def _above(args: HeadroomArguments) -> float:
    return 1.0 if args.over is None else args.over


def _asked(args: HeadroomArguments, headroom: Headroom) -> Headroom:
    """Without the groups of other owners."""
    if not args.owner:
        return headroom
    return replace(headroom, groups=tuple(group for group in headroom.groups if group.owner in args.owner))


def _owners(args: HeadroomArguments, headroom: Headroom) -> tuple[OwnerLoad, ...]:
    from reconciler.features.insight.headroom.loads import by_owner

    return by_owner(headroom.groups, above=_above(args))


def _blocks(args: HeadroomArguments, headroom: Headroom) -> Sequence[Block]:
    from reconciler.features.insight.headroom.text import headroom_lines, owner_lines

    asked = _asked(args, headroom)
    if args.by == "owner":
        return owner_lines(asked, _owners(args, asked), top=args.top, above=_above(args))
    if args.over is None:
        return headroom_lines(asked, top=args.top, above=1.0)
    over = args.over
    shown = replace(asked, groups=tuple(group for group in asked.groups if group.is_above(over)))
    return headroom_lines(shown, top=args.top, above=over, left_out=len(asked.limited) - len(shown.limited))


def _print(args: HeadroomArguments, headroom: Headroom) -> None:
    from reconciler.features.insight.headroom.document import headroom_to_json

    asked = _asked(args, headroom)
    groups = asked.groups if args.over is None else tuple(group for group in asked.groups if group.is_above(_above(args)))
    document = replace(asked, groups=groups[: args.top])
    output.print_result(
        args,
        document=lambda: headroom_to_json(document, _owners(args, asked)),
        lines=lambda: _blocks(args, headroom),
    )


def _drawings(args: HeadroomArguments, reader: HeadroomReader) -> Callable[[], Callable[[], Sequence[Block]]]:
    """Reads for a screen: a source that fails for a while is named above what was read last."""
    last: list[Headroom] = []

    def read() -> Callable[[], Sequence[Block]]:
        from reconciler.render import line

        problem = ""
        try:
            last[:] = [reader.read()]
        except TrafficError as error:
            if not last:
                raise
            problem = str(error)
        headroom = last[0]
        moment = time.strftime("%H:%M:%S")

        def draw() -> Sequence[Block]:
            warning = [line(f"{moment}: {problem}")] if problem else []
            return [*warning, *_blocks(args, headroom)]

        return draw

    return read


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _interval(text: str) -> float:
    seconds = float(text)
    if not _SHORTEST_S <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not an interval: write seconds from {_SHORTEST_S} to 86400")
    return seconds


def _over(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write a percentage such as 80%, or a number such as 0.8")
    return share
