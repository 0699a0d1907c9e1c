"""``kafka-quotas headroom``: how near clients are to their limits now, and which of them brokers throttle."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from reconciler.cli import every_cluster, exit_codes, option_groups, traffic_options
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.cli.traffic_options import label_matcher, share
from reconciler.errors import ReconcilerError, UnreachableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reconciler.features.insight.observe import Headroom
    from reconciler.formats import Json
    from reconciler.model import ClusterFailure
    from reconciler.workflows import Intent

_WITHIN_S: Final = 7.0
"""How long all clusters together may take: a command for people who wait."""


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomArguments:
    """The command line of ``headroom``."""

    paths: tuple[str, ...] = option_groups.connection_paths(", and the owners")
    top: int | None = option("--top", type=_count, metavar="N", help="show only the N that are nearest to their limits")
    over: float | None = option(
        "--over", type=share, metavar="SHARE", help="show only those above this share of the limit, such as 80%%"
    )
    owner: tuple[str, ...] = option("--owner", metavar="NAME", help="show only quotas that this owner declares (repeatable)")
    traffic: tuple[str, ...] = option(
        "--traffic",
        **traffic_options.TRAFFIC,
        help="read rates of prometheus+http(s)://HOST[:PORT][/PATH], or of an exporter's page, "
        "[BROKER=]metrics+http(s)://HOST:PORT/metrics (repeatable). Or of the last minute of request logs, recorder files and "
        "totals, [BROKER=]PATH [default: spec.traffic of the Cluster manifest]",
    )
    match: tuple[str, ...] = traffic_options.MATCH
    http_config: Path | None = traffic_options.HTTP_CONFIG
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: every_cluster.ChosenClusters = group(every_cluster.ChosenClusters)
    current: str | None = option_groups.CURRENT
    detailed_exitcode: bool = option_groups.detailed_exitcode("exit 2 when a group is above --over, or above its limit")
    format: str = option_groups.format_option()


def run(args: HeadroomArguments) -> Result:
    """Read rates and limits; exit 1 when a cluster does not answer, and 2 with ``--detailed-exitcode`` when a group is above."""
    from reconciler.documents import cluster_failure_to_json, clusters_to_json
    from reconciler.features.insight.headroom_view import HEADROOM, headroom_lines
    from reconciler.features.insight.observe import nearest_first
    from reconciler.model import ClusterFailure

    args.connection.check(current=args.current)
    several = args.connection.all_clusters
    read = _observe_every(args) if several else (_observe(args),)
    results = tuple(each if isinstance(each, ClusterFailure) else _chosen(each, args) for each in read)
    known = [each for each in results if not isinstance(each, ClusterFailure)]
    groups = nearest_first((each, group) for each in known for group in each.groups)

    def document(each: Headroom | ClusterFailure) -> Json:
        if isinstance(each, ClusterFailure):
            return cluster_failure_to_json(each)
        return HEADROOM.write(replace(each, groups=tuple(group for of, group in groups[: args.top] if of is each)))

    code = exit_codes.DONE
    if any(isinstance(each, ClusterFailure) and not each.skipped for each in results):
        code = exit_codes.NOT_DONE
    elif args.detailed_exitcode and any(group.is_above(1.0 if args.over is None else args.over) for _, group in groups):
        code = exit_codes.DIFFERENCES
    return Result(
        exit=code,
        view=lambda: headroom_lines(results, groups, top=args.top, over=args.over),
        document=lambda: clusters_to_json(map(document, results)) if several else document(results[0]),
    )


def _chosen(headroom: Headroom, args: HeadroomArguments) -> Headroom:
    """Return the groups above the share and the limits that the owners declare, as far as these are named."""
    owners = args.owner
    return replace(
        headroom,
        groups=tuple(
            group
            for group in headroom.groups
            if (not owners or group.owner in owners) and (args.over is None or group.is_above(args.over))
        ),
        unused=tuple(limit for limit in headroom.unused if not owners or limit.owner in owners),
    )


def _observe_every(args: HeadroomArguments) -> Sequence[Headroom | ClusterFailure]:
    """Read every cluster at the same time. One that does not answer in time is a failure of its own."""
    from reconciler.features.insight.observe import observe_cluster
    from reconciler.workflows import Access, References

    given = {"--traffic": args.traffic, "--match": args.match, "--http-config": args.http_config}
    if unusable := [name for name, value in given.items() if value]:
        raise UsageError(f"--all-clusters reads spec.traffic of each Cluster manifest: leave {unusable[0]} out")
    wanted = every_cluster.Wanted(
        paths=args.paths or (".",), choice=args.connection, references=References(trusted=args.trusted_ref)
    )
    access = Access(command_config=args.connection.command_config)
    return _read_every(every_cluster.load_every(wanted), lambda intent: observe_cluster(intent, access))


def _read_every(
    intents: Sequence[Intent | ClusterFailure], read: Callable[[Intent], Headroom]
) -> tuple[Headroom | ClusterFailure, ...]:
    """Read every cluster, in the order of the intents. One that takes longer than ``_WITHIN_S`` for all of them is a failure.

    Its thread is left behind, and keeps nothing alive: so this is for work that does not write.
    """
    from reconciler.workflows import Intent, failure_of

    done: SimpleQueue[tuple[int, Headroom | ClusterFailure | BaseException]] = SimpleQueue()
    late = UnreachableError(f"no answer within {_WITHIN_S:g} s. Check that its brokers and spec.traffic answer")

    def failure(intent: Intent, error: ReconcilerError) -> ClusterFailure:
        return failure_of(intent.spec.name, intent.spec.cluster_id, error)

    def work(place: int, intent: Intent) -> None:
        try:
            done.put((place, read(intent)))
        except ReconcilerError as error:
            done.put((place, failure(intent, error)))
        except BaseException as error:  # noqa: BLE001 - who waits for the results gets it
            done.put((place, error))

    todo = {place: intent for place, intent in enumerate(intents) if isinstance(intent, Intent)}
    results: list[Headroom | ClusterFailure] = [
        failure(intent, late) if isinstance(intent, Intent) else intent for intent in intents
    ]
    for place, intent in todo.items():
        threading.Thread(target=work, args=(place, intent), name=f"cluster {place}", daemon=True).start()
    deadline = time.monotonic() + _WITHIN_S
    with contextlib.suppress(Empty):
        for _ in todo:
            place, result = done.get(timeout=max(0.0, deadline - time.monotonic()))
            if isinstance(result, BaseException):
                raise result
            results[place] = result
    return tuple(results)


def _observe(args: HeadroomArguments) -> Headroom:
    """Read the quota groups of one cluster. With a trusted reference, server and login are those of it."""
    from reconciler.features.insight.observe import observe
    from reconciler.features.insight.rate_sources import configured_rates
    from reconciler.workflows import Sources, Where

    access = args.connection.access(args.current)
    sources = Sources(Where(paths=args.paths, cluster=args.connection.cluster, access=access, trusted_ref=args.trusted_ref))
    view = sources.view("current")
    spec, trusted = sources.cluster()
    configured = configured_rates(spec, trusted)
    rates = replace(
        configured,
        traffic=args.traffic or configured.traffic,
        match=tuple(map(label_matcher, args.match)),
        http_config=args.http_config,
    )
    if rates.is_recorded and (args.match or args.http_config):
        raise UsageError("--match and --http-config of headroom are for metrics, and --traffic names files: leave them out")
    return observe(view, sources.owners(), rates)
