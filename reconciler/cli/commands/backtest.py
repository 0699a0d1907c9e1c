"""``kafka-quotas backtest``: replay recorded traffic against the current and the proposed quotas."""

from __future__ import annotations

import contextlib
import datetime
import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.cli import exit_codes, option_groups, output
from reconciler.cli.declaration import added_groups, argument, group, option
from reconciler.cli.entity_options import SETTINGS, parse_settings
from reconciler.cli.results import OutFile, Result
from reconciler.cli.traffic_options import (
    SINCE,
    TRAFFIC,
    UNTIL,
    BrokerModelOptions,
    ReadingOptions,
    SparkOptions,
    configured_backtest,
)
from reconciler.errors import GitError, MissingDependencyError, TrafficError, UntrustedError, UsageError
from reconciler.hooks import added

if TYPE_CHECKING:
    from reconciler.model import BacktestReport, CurrentState
    from reconciler.workflows import Access, Intent

FORMATS: Final = ("text", "json", "markdown", "html", "github", "sarif")
_PLOTS: Final = 12
_MOST_PLOTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestSource:
    """Which traffic is replayed, and how it is read."""

    traffic: tuple[str, ...] = option(
        "--traffic",
        **TRAFFIC,
        help="replay this recorded traffic: a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), or [BROKER=]PATH: "
        "request logs of one broker (kafka.request.logger at DEBUG), a file or a folder with rotated and gzipped files. Or "
        "Parquet in the canonical traffic schema, or a folder of compact. Spark reads [BROKER=]SCHEME://... (s3a, hdfs, "
        "abfss, gs) and table:NAME. Repeatable for paths and addresses. Without BROKER= the broker's id comes from a name "
        "such as node-3 or broker-3 in the path, else from a count that begins with 0 [default: spec.traffic of the Cluster "
        "manifest]",
    )
    since: datetime.datetime | None = option(
        "--since",
        **SINCE,
        help="read samples of Prometheus, or rows of Parquet, an address or a table, after this time [default: 24 h before "
        "--until for Prometheus, else all]",
    )
    until: datetime.datetime | None = UNTIL
    reading: ReadingOptions = group(ReadingOptions)
    spark: SparkOptions = group(SparkOptions)
    model: BrokerModelOptions = group(BrokerModelOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestArguments:
    """The command line of ``backtest``."""

    paths: tuple[str, ...] = argument(
        "PATH",
        nargs="*",
        default=[],
        help="files or folders with manifests [default: ., with --set, and with moved traffic and known quotas, none]",
    )
    details: bool = option("--details", help="print also each broker, and the assumptions of the verdicts")
    exact: bool = option("--exact", help="judge every single request instead of per-second totals")
    plots: int | None = option(
        "--plots",
        metavar="N",
        help="plot the rate of the N worst quota groups over time, which reads their traffic once more [default: 12 for an HTML "
        "page, else 0]",
    )
    source: BacktestSource = group(BacktestSource)
    situations: tuple[Any, ...] = added_groups("SITUATIONS")
    settings: tuple[str, ...] = SETTINGS
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    current: str | None = option_groups.current(
        "compare with the quotas of this snapshot, or of the live cluster of --bootstrap-server [default: no comparison]"
    )
    requests: Path | None = option(
        "--requests", section="Output", metavar="FILE", help="write one JSON line for each replayed request (implies --exact)"
    )
    format: str = option_groups.format_option(FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(FORMATS)


def run(args: BacktestArguments) -> Result:
    """Replay; exit 1 when the policy refuses it or a finding is at or above ``--fail-on``, and when nothing could be checked."""
    from reconciler.cli.results import write_fault

    try:
        return _judge(args)
    except (GitError, MissingDependencyError, TrafficError, UntrustedError) as error:
        # A comment on the pull request then says that nothing was checked, and why.
        write_fault(error, "traffic-not-read", args.out)
        raise
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("No file was written")
        raise


def _judge(args: BacktestArguments) -> Result:
    from reconciler.model import ClusterSpec, Severity
    from reconciler.workflows import References, load_intent, proposal_of, proposal_of_settings, run_backtest, set_quotas

    limit, connection = Severity(args.fail_on), args.connection
    situation = next(iter(args.situations), None)
    if situation is not None:
        situation.check({"--exact": args.exact, "--requests": args.requests, "--plots": args.plots})
    plots = _PLOTS if situation is None and "html" in (args.format, *(name for name, _ in args.out)) else 0
    if args.plots is not None:
        plots = _checked_plots(args.plots)
    access = connection.access(args.current)
    settings = parse_settings(args.settings) if args.settings else {}
    intent = None
    is_known = bool(settings) or (situation is not None and bool(args.current or connection.named))
    if not is_known or args.paths or connection.cluster is not None or args.trusted_ref is not None:
        intent = load_intent(args.paths or ["."], cluster=connection.cluster, references=References(trusted=args.trusted_ref))
    spec, trusted = (ClusterSpec(), None) if intent is None else (intent.spec, intent.trusted)
    if situation is not None and not situation.needs_traffic:
        if args.source.traffic:
            raise UsageError("--deploy judges a release, and no traffic: leave --traffic out")
        made: Result = situation.without_traffic(intent, _read_current(args, access, intent), settings)
        return made
    source = args.source
    chosen = replace(
        configured_backtest(
            spec, trusted, traffic=source.traffic, since=source.since, until=source.until, reading=source.reading
        ),
        kafka_version=source.model.kafka_version,
        spark=source.spark.session(),
        quota_callback=source.model.quota_callback,
        requests=args.requests,
        exact=args.exact,
        plots=plots,
    )
    with output.LiveProgress() as progress:
        progress.step("reading the quotas")
        current = _read_current(args, access, intent)
        if situation is not None:
            report = situation.run(intent, current, settings, chosen, progress)
        else:
            quotas = proposal_of_settings({}, current) if intent is None else proposal_of(intent, current)
            report = run_backtest(set_quotas(quotas, settings) if settings else quotas, chosen, progress=progress)
    stopped = report.refused or any(finding.severity.at_least(limit) for finding in report.findings)
    result = result_of_backtest(report, details=args.details)
    return replace(result, exit=exit_codes.NOT_DONE if stopped else exit_codes.DONE)


def result_of_backtest(report: BacktestReport, *, details: bool = False) -> Result:
    """A report in each of ``FORMATS``."""
    from reconciler.documents import BACKTEST
    from reconciler.render import answer, backtest_view

    return Result(
        view=lambda: backtest_view(report, details=details),
        document=lambda: BACKTEST.write(report),
        # Readers of a list of findings get the answer as its first finding.
        findings=lambda: (answer(report), *report.findings),
        commit=report.commit.commit,
        forms={form: functools.partial(_page_of_backtest, report, form) for form in ("markdown", "html")},
    )


def _page_of_backtest(report: BacktestReport, form: str) -> str:
    """All details; in HTML with plots."""
    from reconciler.cli.results import page
    from reconciler.render import backtest_view

    return page(backtest_view(report, details=True, page=form == "html"), form, report.commit.commit)


def _read_current(args: BacktestArguments, access: Access, intent: Intent | None) -> CurrentState | None:
    """The quotas of the snapshot, or of the live cluster that an option names, with leaders where a limit depends on them."""
    from reconciler.model import ClusterSpec
    from reconciler.workflows import open_cluster, read_state, snapshot_reader, uses_leaders, with_leaders

    spec, trusted = (ClusterSpec(), None) if intent is None else (intent.spec, intent.trusted)
    if args.current is not None:
        return read_state(spec, snapshot_reader(args.current, trusted=trusted.files if trusted is not None else None))
    if args.connection.named is None:
        return None
    with contextlib.closing(open_cluster(spec, access, trusted=trusted)) as cluster:
        current = read_state(spec, cluster)
        needed = uses_leaders(intent, args.source.model.quota_callback) or _limits_mutations(intent, current)
        return with_leaders(current, cluster) if needed else current


def _limits_mutations(intent: Intent | None, current: CurrentState) -> bool:
    """Whether it matters how many partitions topics have, which the cluster shows beside their leaders."""
    from reconciler.model import QuotaKey

    key = QuotaKey.CONTROLLER_MUTATION_RATE
    declared = intent.desired.entities.values() if intent is not None else ()
    return any(key in quotas for quotas in current.entities.values()) or any(key in each.quotas for each in declared)


def _checked_plots(plots: int) -> int:
    if not 0 <= plots <= _MOST_PLOTS:
        raise UsageError(f"--plots takes a number from 0 to {_MOST_PLOTS}, not {plots}")
    if plots and not any(added("PLOTS")):
        raise UsageError("--plots needs the feature plots, and its folder is not installed")
    return plots
