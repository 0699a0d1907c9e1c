"""``kafka-quotas backtest``: replay recorded traffic against the current and the proposed quotas."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import typed
from reconciler.cli.entity_options import default_in_text_warnings
from reconciler.cli.quota_settings import add_set_option, parse_settings
from reconciler.cli.replay import ReplayArguments, add_replay_options, read_current, read_intent, replay_options
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.model import BacktestReport
    from reconciler.workflows import ManifestFiles

_PLOTS: Final = 12
_MOST_PLOTS: Final = 100
_NO_WORKERS_OPTION: Final = (
    "Unknown option --without-python-workers. It was for Spark clusters whose workers have no Python, and is gone. Leave out "
    "--master and --remote, so that Spark runs on this machine. Or install Python, pyarrow, pandas and numpy on the workers, "
    "and name that Python in PYSPARK_PYTHON"
)
"""Until the release after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestArguments(ReplayArguments):
    """The command line of ``backtest``."""

    propose: bool
    dry_run: bool
    exact: bool
    requests: str | None
    without_python_workers: bool
    plots: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``backtest``."""
    parser.add_argument(
        "paths", nargs="*", default=[], metavar="PATH", help="files or folders with manifests [default: ., with --set none]"
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
    parser.add_argument(
        "--without-python-workers",
        action="store_true",
        help=argparse.SUPPRESS,
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
    add_replay_options(parser)
    changes = options.section(parser, "Changes")
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
        set_quotas,
    )

    limit, files = Severity(args.fail_on), output.parse_out(_files(args), formats=FORMATS)
    if args.without_python_workers:
        raise UsageError(_NO_WORKERS_OPTION)
    plots = _plots(args, [args.format, *(name for name, _ in files)])
    options.check_one_state(args, args.current)
    _check_propose(args)
    settings = parse_settings(args.settings)
    for warning in default_in_text_warnings(settings):
        output.tell(f"warning: {warning}")
    intent = read_intent(args, files, needed=not settings)
    spec, trusted = (ClusterSpec(), None) if intent is None else (intent.spec, intent.trusted)
    chosen = replace(
        replay_options(args, args.traffic, spec, trusted),
        requests=Path(args.requests) if args.requests else None,
        exact=args.exact,
        plots=plots,
        verdict_rows=_verdict_rows(args),
    )
    manifests = ManifestFiles(intent) if args.propose and intent is not None else None
    current = read_current(args, intent)
    proposal = proposal_of_settings(settings, current) if intent is None else set_quotas(proposal_of(intent, current), settings)
    report = run_backtest(proposal, chosen, progress=output.StderrProgress(args, every_s=30.0))
    print_backtest(args, report, files)
    if manifests is not None:
        _propose(args, manifests, report)
    stopped = report.refused or any(finding.severity.at_least(limit) for finding in report.findings)
    return exit_codes.NOT_DONE if stopped else exit_codes.DONE


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
    output.print_lines(args, proposal_lines(proposals, written=not args.dry_run), stream)
    output.print_text(revision_diff(revisions), stream)


def _plots(args: BacktestArguments, formats: Sequence[str]) -> int:
    if args.plots is None:
        return _PLOTS if "html" in formats else 0
    if not 0 <= args.plots <= _MOST_PLOTS:
        raise UsageError(f"--plots takes a number from 0 to {_MOST_PLOTS}, not {args.plots}")
    return int(args.plots)


FORMATS: Final = ("text", "json", "markdown", "html", "github", "sarif", "summary", "code-quality", "junit")
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


def print_backtest(args: ReplayArguments, report: BacktestReport, files: Sequence[tuple[str, Path]]) -> None:
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
