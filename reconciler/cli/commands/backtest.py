"""``kafka-quotas backtest``: replay recorded traffic against the current and the proposed quotas."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import JudgedTrafficArguments, typed
from reconciler.cli.entity_options import default_in_text_warnings
from reconciler.cli.quota_settings import add_set_option, parse_settings
from reconciler.cli.traffic_options import (
    add_broker_model_options,
    add_known_clients_option,
    add_prometheus_options,
    add_reading_options,
    add_spark_options,
    backtest_options,
    dataset_time,
    prometheus_request,
)
from reconciler.errors import ManifestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.model import BacktestReport, ClusterSpec, CurrentState
    from reconciler.workflows import BacktestOptions, Intent, ManifestFiles, Situation, TrustedTree

_PLOTS: Final = 12
_MOST_PLOTS: Final = 100
_MOST_FACTOR: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestArguments(JudgedTrafficArguments):
    """The command line of ``backtest``. ``settings``: those of ``--set``."""

    settings: tuple[str, ...]
    trusted_ref: str | None
    fail_on: str
    details: bool
    out: tuple[str, ...]
    since: datetime.datetime | None
    until: datetime.datetime | None
    propose: bool
    dry_run: bool
    exact: bool
    requests: str | None
    plots: int | None
    brokers: int | None
    without_broker: tuple[int, ...]
    leaders: str | None
    factor: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``backtest``."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=[],
        metavar="PATH",
        help="files or folders with manifests [default: ., with --set, and with moved traffic and known quotas, none]",
    )
    parser.add_argument(
        "--details", action="store_true", help="print also each broker, the fit of limits, and the assumptions of the verdicts"
    )
    parser.add_argument("--exact", action="store_true", help="judge every single request instead of sums of whole seconds")
    parser.add_argument(
        "--plots",
        type=int,
        metavar="N",
        help="plot the rate of the N worst quota groups over time, which reads their traffic once more [default: 12 for an HTML "
        "page, else 0]",
    )
    options.section(parser, "Traffic").add_argument(
        "--traffic",
        action="append",
        default=[],
        metavar="SOURCE",
        help="replay the samples of a Prometheus server (prometheus+http(s)://HOST[:PORT][/PATH]), or [BROKER=]PATH: request "
        "logs of one broker (kafka.request.logger at DEBUG), a file or a folder with rotated and gzipped files. Or Parquet "
        "in the canonical traffic schema, or a folder of compact. Spark reads [BROKER=]SCHEME://... (s3a, hdfs, abfss, gs) and "
        "table:NAME. Repeatable for paths and addresses. Without BROKER= the broker's id comes from a name such as node-3 or "
        "broker-3 in the path, else from a count that begins with 0 [default: spec.traffic of the Cluster manifest]",
    )
    add_prometheus_options(parser)
    add_known_clients_option(parser)
    add_reading_options(parser)
    add_spark_options(parser)
    add_broker_model_options(parser)
    changes = options.section(parser, "Changes")
    changes.add_argument(
        "--brokers", type=_count, metavar="N", help="divide every client's traffic among N brokers in equal parts"
    )
    changes.add_argument(
        "--without-broker",
        type=_broker,
        action="append",
        default=[],
        metavar="ID",
        help="move the traffic of this broker to the others in equal parts (repeatable)",
    )
    changes.add_argument(
        "--leaders",
        metavar="FILE",
        help="move traffic with the leaders of partitions: the JSON of kafka-reassign-partitions (of --generate, both parts), or "
        "of Cruise Control (a proposal with verbose=true, or kafka_cluster_state)",
    )
    changes.add_argument(
        "--factor", type=_factor, default=1.0, metavar="N", help="multiply the traffic, such as 1.5 [default: 1]"
    )
    changes.add_argument(
        "--propose",
        action="store_true",
        help="write the recommended values of quotas that throttle, or may, into the manifests, and print the diff",
    )
    changes.add_argument("--dry-run", action="store_true", help="with --propose: print the diff, and write nothing")
    add_set_option(parser, without="Without PATH, it changes the quotas of --current or --bootstrap-server")
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_options(parser)
    options.add_current_option(
        parser, "compare with the quotas of this snapshot, or of the live cluster of --bootstrap-server [default: no comparison]"
    )
    options.section(parser, "Output").add_argument(
        "--requests", metavar="FILE", help="write one JSON line for each replayed request (implies --exact)"
    )
    options.add_output_options(
        parser,
        formats=FORMATS,
        out=True,
        also=". parquet=PLACE writes a row for each quota group on each broker to a new folder, an address, or table:NAME",
    )


def parse(namespace: argparse.Namespace) -> BacktestArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(BacktestArguments, namespace)


def run(args: BacktestArguments) -> int:
    """Replay and print; 0, or 1 when the policy refuses it or a finding is at or above ``--fail-on``."""
    from reconciler.model import ClusterSpec, Severity
    from reconciler.workflows import (
        ManifestFiles,
        proposal_of,
        proposal_of_settings,
        run_backtest,
        run_situation,
        set_quotas,
    )

    limit, files = Severity(args.fail_on), output.parse_out(_files(args), formats=FORMATS)
    situation = _situation(args)
    plots = 0 if situation is not None else _plots(args, [args.format, *(name for name, _ in files)])
    options.check_one_state(args, args.current)
    _check_propose(args)
    settings = parse_settings(args.settings)
    for warning in default_in_text_warnings(settings):
        output.tell(f"warning: {warning}")
    known = situation is not None and bool(args.current or args.bootstrap_server or args.zookeeper)
    intent = _read_intent(args, files, needed=not settings and not known)
    spec, trusted = (ClusterSpec(), None) if intent is None else (intent.spec, intent.trusted)
    chosen = replace(
        _reading(args, spec, trusted),
        requests=Path(args.requests) if args.requests else None,
        exact=args.exact,
        plots=plots,
        verdict_rows=_verdict_rows(args),
    )
    manifests = ManifestFiles(intent) if args.propose and intent is not None else None
    current, progress = _read_current(args, intent), output.StderrProgress(every_s=30.0)
    if situation is not None:
        report = run_situation(replace(situation, settings=settings), intent, current, chosen, progress=progress)
    else:
        quotas = proposal_of_settings(settings, current) if intent is None else set_quotas(proposal_of(intent, current), settings)
        report = run_backtest(quotas, chosen, progress=progress)
    print_backtest(args, report, files)
    if manifests is not None:
        _propose(args, manifests, report)
    stopped = report.refused or any(finding.severity.at_least(limit) for finding in report.findings)
    return exit_codes.NOT_DONE if stopped else exit_codes.DONE


def _situation(args: BacktestArguments) -> Situation | None:
    """Where the traffic goes, and how much of it there is; ``None``: it stays as recorded. Raises ``UsageError``."""
    from reconciler.workflows import Situation

    situation = Situation(
        brokers=args.brokers,
        without=args.without_broker,
        leaders=Path(args.leaders) if args.leaders else None,
        factor=args.factor,
    )
    if not situation.is_given:
        return None
    situation.require_one_way()
    others = {"--exact": args.exact, "--requests": args.requests, "--plots": args.plots, "--propose": args.propose}
    others["--out parquet="] = _verdict_rows(args)
    if unusable := [name for name, value in others.items() if value]:
        raise UsageError(f"Traffic that is moved or multiplied is judged by whole seconds: leave {unusable[0]} out")
    return situation


def _read_intent(args: BacktestArguments, files: Sequence[tuple[str, Path]], *, needed: bool) -> Intent | None:
    """What the manifests want. ``None`` where no path, cluster or reference is given, and manifests are not ``needed``.

    ``files``: of ``--out``, which get the findings of manifests with errors. Raises ``ManifestError``, ``UsageError``,
    ``GitError`` and ``UntrustedError``.
    """
    from reconciler.workflows import References, load_intent, with_lint

    if not needed and not args.paths and args.cluster is None and args.trusted_ref is None:
        return None
    try:
        references = References(trusted=args.trusted_ref)
        return with_lint(load_intent(args.paths or ["."], cluster=args.cluster, references=references))
    except ManifestError as error:
        output.write_findings(files, error.findings)
        output.print_findings(args, error.findings, to_stdout=True)
        raise


def _read_current(args: BacktestArguments, intent: Intent | None) -> CurrentState | None:
    """The quotas of the snapshot, or of the live cluster that an option names, with leaders where a limit depends on them."""
    from reconciler.model import ClusterSpec
    from reconciler.workflows import open_cluster, read_state, snapshot_reader, uses_leaders, with_leaders

    spec, trusted = (ClusterSpec(), None) if intent is None else (intent.spec, intent.trusted)
    if args.current is not None:
        return read_state(spec, snapshot_reader(args.current, trusted=trusted.files if trusted is not None else None))
    if args.bootstrap_server is None and args.zookeeper is None:
        return None
    with contextlib.closing(open_cluster(spec, options.access(args), trusted=trusted)) as cluster:
        current = read_state(spec, cluster)
        return with_leaders(current, cluster) if uses_leaders(intent, args.quota_callback) else current


def _reading(args: BacktestArguments, spec: ClusterSpec, trusted: TrustedTree | None) -> BacktestOptions:
    """How to read the traffic of the options, or else of the Cluster manifest's server. Raises ``UsageError``."""
    from reconciler.workflows import configured_server, is_prometheus

    of_files = bool(args.traffic) and not any(map(is_prometheus, args.traffic))
    prometheus = prometheus_request(
        args.traffic,
        # Of files, the rows between these times are judged.
        since=None if of_files else args.since,
        until=None if of_files else args.until,
        match=args.match,
        http_config=args.http_config,
        store=args.traffic_store,
        server=configured_server(spec, trusted),
    )
    if prometheus is None and not args.traffic:
        raise UsageError("No traffic is given. Pass --traffic, or set spec.traffic of the Cluster manifest")
    if prometheus is None and args.known_clients:
        raise UsageError("--known-clients is for --traffic prometheus+http(s)://HOST only")
    return backtest_options(
        args,
        traffic=args.traffic,
        mapping=args.mapping,
        prometheus=prometheus,
        between=dataset_time(args.traffic, since=args.since, until=args.until),
    )


_ROWS: Final = "parquet="
"""The form of ``--out`` that takes a folder, an address or a table."""


def _files(args: BacktestArguments) -> list[str]:
    """The files of ``--out``."""
    return [spec for spec in args.out if not spec.startswith(_ROWS)]


def _verdict_rows(args: BacktestArguments) -> str | None:
    """Where rows of verdicts go. Raises ``UsageError`` for two places, and beside options that need all rows in the report."""
    places = [spec.removeprefix(_ROWS) for spec in args.out if spec.startswith(_ROWS)]
    if not places:
        return None
    if len(places) > 1 or not places[0]:
        raise UsageError("--out parquet= takes one folder, address or table:NAME")
    if args.requests or args.propose or args.plots:
        option = "--requests" if args.requests else "--propose" if args.propose else "--plots"
        raise UsageError(f"--out parquet= and {option}: give them in two runs, since large reports keep only the worst rows")
    return places[0]


def _check_propose(args: BacktestArguments) -> None:
    if args.dry_run and not args.propose:
        raise UsageError("--dry-run is for --propose: give --propose, too")
    if args.propose and args.settings:
        raise UsageError("--propose writes into manifests, and values of --set are in none. Give one of the two")


def _propose(args: BacktestArguments, manifests: ManifestFiles, report: BacktestReport) -> None:
    """Write, then print: on stderr where another format than text is on stdout. Raises ``FileAccessError``."""
    from reconciler.render import proposal_lines, revision_diff
    from reconciler.workflows import write_revisions

    proposals = manifests.propose(report)
    revisions = manifests.revise(proposals)
    if not args.dry_run:
        write_revisions(revisions)
    stream = sys.stdout if args.format == "text" else sys.stderr
    output.print_lines(proposal_lines(proposals, written=not args.dry_run), stream)
    output.print_text(revision_diff(revisions), stream)


def _plots(args: BacktestArguments, formats: Sequence[str]) -> int:
    if args.plots is None:
        return _PLOTS if "html" in formats else 0
    if not 0 <= args.plots <= _MOST_PLOTS:
        raise UsageError(f"--plots takes a number from 0 to {_MOST_PLOTS}, not {args.plots}")
    return int(args.plots)


FORMATS: Final = ("text", "json", "markdown", "html", "github", "sarif", "summary")
_OF_FINDINGS: Final = frozenset({"github", "sarif", "code-quality", "junit"})


def backtest_as(name: str, report: BacktestReport, *, details: bool = False) -> str:
    """A report in one of ``FORMATS``; the text is without colour."""
    if name in _OF_FINDINGS:
        from reconciler.cli.renderings import findings_as
        from reconciler.render import answer

        # Readers of a list of findings get the answer as its first finding.
        return findings_as(name, (answer(report), *report.findings), suite="kafka-quotas backtest")
    match name:
        case "json":
            from reconciler.documents import backtest_to_json
            from reconciler.formats import document_text

            return document_text(backtest_to_json(report))
        case "markdown":
            from reconciler.render import render_backtest_markdown

            return render_backtest_markdown(report)
        case "summary":
            from reconciler.cli.renderings import SUMMARY_BUDGET
            from reconciler.render import render_backtest_markdown

            return render_backtest_markdown(report, budget=SUMMARY_BUDGET)
        case "html":
            from reconciler.cli.renderings import repository_links
            from reconciler.render import backtest_html

            return backtest_html(report, repository_links(report.commit.commit))
    from reconciler.render import backtest_lines, plain

    return plain(backtest_lines(report, details=details))


def print_backtest(args: BacktestArguments, report: BacktestReport, files: Sequence[tuple[str, Path]]) -> None:
    """Write a report to the files of ``--out``, then print it as ``--format``. Raises ``FileAccessError``, ``OutputError``."""
    from reconciler.documents import backtest_to_json
    from reconciler.files import write_whole
    from reconciler.render import backtest_lines

    for name, path in files:
        write_whole(path, [backtest_as(name, report, details=args.details)])
    output.print_result(
        args,
        document=lambda: backtest_to_json(report),
        lines=lambda: backtest_lines(report, details=args.details),
        other=lambda name: backtest_as(name, report),
    )


def _count(text: str) -> int:
    return _whole(text, "a number of brokers, such as 12", least=1)


def _broker(text: str) -> int:
    return _whole(text, "the id of a broker, such as 3", least=0)


def _whole(text: str, what: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= _MOST_FACTOR:
        raise argparse.ArgumentTypeError(f"{text!r} is not a factor: write a number above 0, and {_MOST_FACTOR:,} at most")
    return factor
