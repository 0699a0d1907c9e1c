"""``kafka-quotas rightsize``: each declared limit beside what recorded traffic used of it, and better values."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from reconciler.cli import option_groups, output, traffic_options
from reconciler.cli.declaration import option
from reconciler.cli.results import OutFile, Result, page
from reconciler.errors import GitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconciler.features.rightsizing.measuring import SizingReport
    from reconciler.manifest import SizingRules
    from reconciler.model import ClusterSpec, Span
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
    cluster: str | None = option(
        "--cluster", section="Cluster", metavar="NAME", help="choose this Cluster manifest, when there are several"
    )
    current: str | None = option_groups.current(
        "take what manifests leave open, such as brokers and other quotas, from this snapshot [default: the manifests alone]"
    )
    format: str = option_groups.format_option(_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(_FORMATS)


def run(args: RightsizeArguments) -> Result:
    """Judge every limit. With ``--write`` the values change, once the result is printed. Raises as ``run_backtest``."""
    from reconciler.features.rightsizing.measuring import size_cluster
    from reconciler.features.rightsizing.report import RIGHTSIZE, sizing_view
    from reconciler.workflows import load_intent, read_state, snapshot_reader, with_lint

    with output.LiveProgress() as progress:
        intent = with_lint(load_intent(args.paths, cluster=args.cluster))
        spec = _with_days(intent.spec, intent.loaded.repository.rightsize)
        options = traffic_options.configured_backtest(spec, intent.trusted, traffic=args.traffic, since=args.since)
        current = None if args.current is None else read_state(spec, snapshot_reader(args.current))
        report = size_cluster(intent, current, options, changed_at=_changed_at(args.paths[0]), progress=progress)
    return Result(
        view=lambda: sizing_view(report),
        document=lambda: RIGHTSIZE.write(report),
        commit=report.commit.commit,
        forms={form: partial(page, sizing_view(report), form, report.commit.commit) for form in _FORMATS[2:]},
        then=lambda: _write(args.write, intent, report),
    )


def _with_days(spec: ClusterSpec, rules: SizingRules) -> ClusterSpec:
    """The cluster whose traffic is read for as long as the rules need."""
    traffic = spec.traffic
    if traffic is None or traffic.days is None:
        return spec
    return replace(spec, traffic=replace(traffic, days=max(traffic.days, rules.days)))


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


def _write(where: str | None, intent: Intent, report: SizingReport) -> None:
    """Change the manifests. Raises ``ReconcilerError``."""
    if where is None:
        return
    from reconciler.features.rightsizing.edits import keep_requests, write_values

    for sentence in (write_values if where == "files" else keep_requests)(intent, report):
        output.tell(sentence)
