"""``kafka-quotas rightsize``: each declared limit beside what recorded traffic used of it, and better values."""

from __future__ import annotations

import contextlib
import datetime
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from reconciler.cli import every_cluster, option_groups, output, traffic_options
from reconciler.cli.declaration import option
from reconciler.cli.results import OutFile, Result, page
from reconciler.errors import GitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reconciler.features.rightsizing.measuring import MeasuredCluster, SizedClusters, SizingReport
    from reconciler.manifest import SizingRules
    from reconciler.model import ClusterFailure, ClusterSpec, CurrentState, Span
    from reconciler.ports import Progress
    from reconciler.workflows import Intent

_FORMATS: Final = ("text", "json", "markdown", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsizeArguments:
    """The command line of ``rightsize``."""

    paths: tuple[str, ...] = option_groups.PATHS
    write: str | None = option(
        "--write",
        choices=("files", "requests"),
        metavar="WHERE",
        help="change the values in the files here, or keep a pull request for each owner in requests [default: change nothing]",
    )
    traffic: tuple[str, ...] = option(
        "--traffic",
        **traffic_options.TRAFFIC,
        help="read this traffic, as backtest does (repeatable) [default: spec.traffic of the Cluster manifest]",
    )
    since: datetime.datetime | None = option(
        "--since",
        **traffic_options.SINCE,
        help="read samples of Prometheus, or rows of Parquet, an address or a table, after this time [default: 90 days ago, or "
        "as the Repository manifest sets it]",
    )
    cluster: tuple[str, ...] = option(
        "--cluster",
        section="Cluster",
        metavar="NAME",
        help="choose this Cluster manifest, when there are several (repeatable: a value that several clusters share is judged on "
        "all of them)",
    )
    all_clusters: bool = every_cluster.ALL_CLUSTERS
    current: str | None = option_groups.current(
        "take what manifests leave open, such as brokers and other quotas, from this snapshot [default: the manifests alone]"
    )
    format: str = option_groups.format_option(_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(_FORMATS)


def run(args: RightsizeArguments) -> Result:
    """Judge every limit. With ``--write`` the values change, once the result is printed. Raises as ``run_backtest``."""
    from reconciler.features.rightsizing.measuring import size_clusters
    from reconciler.features.rightsizing.report import RIGHTSIZE, sizing_view
    from reconciler.model import ClusterFailure

    is_one = not args.all_clusters and len(args.cluster) < 2
    if not is_one:
        _check_several(args)
    with contextlib.ExitStack() as opened, output.LiveProgress() as progress:
        results = _measure(args, opened, progress) if is_one else _measure_several(args, opened, progress)
        measured = [each for each in results if not isinstance(each, ClusterFailure)]
        failed = frozenset(each.cluster.name or "" for each in results if isinstance(each, ClusterFailure))
        sized = size_clusters(measured, failed=failed, changed_at=_changed_at(args.paths[0]), progress=progress)
    of_cluster = {report.cluster: report for report in sized.reports}

    def result(report: SizingReport) -> Result:
        return Result(
            view=lambda: sizing_view(report),
            document=lambda: RIGHTSIZE.write(report),
            commit=report.commit.commit,
            forms={form: partial(page, sizing_view(report), form, report.commit.commit) for form in _FORMATS[2:]},
        )

    each_result = [each if isinstance(each, ClusterFailure) else result(of_cluster[each.name]) for each in results]
    whole = result(sized.reports[0]) if is_one else every_cluster.combined(each_result)
    return replace(whole, then=lambda: _write(args, sized))


def _check_several(args: RightsizeArguments) -> None:
    """Raise ``UsageError`` for options that are about one cluster."""
    if args.all_clusters and args.cluster:
        raise UsageError("--all-clusters and --cluster exclude each other")
    for name, value in (("--traffic", args.traffic), ("--current", args.current)):
        if value:
            raise UsageError(f"{name} is of one cluster. Several clusters are judged by spec.traffic of their Cluster manifests")
    if args.write == "requests":
        raise UsageError("--write requests is for one cluster. Write the files, and open one pull request with them")
    several = "--all-clusters" if args.all_clusters else "More than one --cluster"
    every_cluster.check_formats(args.format, args.out, several=several)


def _measure(args: RightsizeArguments, opened: contextlib.ExitStack, progress: Progress) -> Sequence[MeasuredCluster]:
    from reconciler.workflows import load_intent

    intent = load_intent(args.paths, cluster=args.cluster[0] if args.cluster else None)
    return [_measure_one(args, intent, opened, progress)]


def _measure_several(
    args: RightsizeArguments, opened: contextlib.ExitStack, progress: Progress
) -> Sequence[MeasuredCluster | ClusterFailure]:
    from reconciler.model import ClusterFailure, Severity
    from reconciler.text import did_you_mean, shown
    from reconciler.workflows import References, for_every, load_every_intent

    intents = load_every_intent(args.paths, fail_on=Severity.ERROR, references=References())
    of_name = {each.cluster.name if isinstance(each, ClusterFailure) else each.spec.name: each for each in intents}
    for name in args.cluster:
        if name not in of_name:
            raise UsageError(f"no manifest declares cluster {shown(name)}{did_you_mean(name, filter(None, of_name))}")
    chosen = [each for name, each in of_name.items() if args.all_clusters or name in args.cluster]
    return for_every(chosen, lambda intent: _measure_one(args, intent, opened, progress))


def _measure_one(args: RightsizeArguments, intent: Intent, opened: contextlib.ExitStack, progress: Progress) -> MeasuredCluster:
    from reconciler.features.rightsizing.measuring import measure_cluster
    from reconciler.workflows import with_lint

    intent = with_lint(intent)
    spec = _with_days(intent.spec, intent.loaded.repository.rightsize)
    options = traffic_options.configured_backtest(spec, intent.trusted, traffic=args.traffic, since=args.since)
    return measure_cluster(intent, _current(args, spec), options, opened=opened, progress=progress)


def _with_days(spec: ClusterSpec, rules: SizingRules) -> ClusterSpec:
    """The cluster whose traffic is read for as long as the rules need."""
    traffic = spec.traffic
    if traffic is None or traffic.days is None:
        return spec
    return replace(spec, traffic=replace(traffic, days=max(traffic.days, rules.days)))


def _current(args: RightsizeArguments, spec: ClusterSpec) -> CurrentState | None:
    from reconciler.workflows import read_state, snapshot_reader

    return None if args.current is None else read_state(spec, snapshot_reader(args.current))


def _changed_at(folder: str) -> Callable[[Span], datetime.datetime | None]:
    """Return a function that gives when the line of a value was committed, or the time now for one that is not committed yet.

    It gives ``None`` outside of git, and for a file that git does not know.
    """
    from reconciler.workflows import repository_around

    try:
        git = repository_around(folder)
    except GitError:
        return lambda _: None

    def changed(span: Span) -> datetime.datetime | None:
        try:
            return git.blame_line(None, git.place(span.file), span.line).committed
        except GitError:
            return None

    return changed


def _write(args: RightsizeArguments, sized: SizedClusters) -> None:
    """Change the manifests. Raises ``ReconcilerError``."""
    if args.write is None or not sized.reports:
        return
    from reconciler.features.rightsizing.edits import write_values
    from reconciler.features.rightsizing.owner_requests import keep_requests

    sentences = write_values(sized) if args.write == "files" else keep_requests(sized)
    for sentence in sentences:
        output.tell(sentence)
