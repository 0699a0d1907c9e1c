"""``kafka-quotas report``: one page to look at, of all clusters; it never writes to one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output
from reconciler.errors import ManifestError, UsageError

if TYPE_CHECKING:
    from reconciler.model.overview import Overview


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``report``."""
    options.add_path_argument(parser)
    parser.add_argument("--out", metavar="FILE", help="write the page there: one HTML file that needs nothing else")
    parser.add_argument("--cluster", metavar="NAME", help="only this Cluster document (default: all of them)")
    options.add_connection_options(parser)
    parser.add_argument(
        "--current", metavar="FILE", help="show this snapshot, not a live cluster; {cluster} stands for each name"
    )
    parser.add_argument(
        "--baseline",
        metavar="REF|FILE",
        help="what was applied last: a git reference, or the file of apply --record-baseline; {cluster} stands for each name",
    )
    parser.add_argument(
        "--audit", action="append", default=[], metavar="FILE", help="show the last runs of this audit file; repeatable"
    )
    parser.add_argument(
        "--backtest",
        action="append",
        default=[],
        metavar="FILE",
        help="show traffic against limits, of what backtest --format json printed; repeatable",
    )
    options.add_trusted_ref_option(parser)
    options.add_fail_on_option(parser)
    parser.add_argument(
        "--detailed-exitcode", action="store_true", help="exit 2 when something differs; unmanaged entities do not"
    )
    options.add_output_options(parser, formats=("text", "json", "html"))


def run(args: argparse.Namespace) -> int:
    """Read, write the page, print; 1 when a cluster could not be read, 2 for differences with ``--detailed-exitcode``."""
    from reconciler.formats.whole_file import write_whole
    from reconciler.render.report_page import report_html
    from reconciler.workflows.report import failed

    options.check_one_state(args)
    if args.out is not None and not args.out:
        raise UsageError("--out takes the name of a file")
    try:
        overview = _read(args)
    except ManifestError as error:
        if error.findings:
            output.print_findings(args, error.findings, to_stdout=args.format != "html")
        raise
    if args.out is not None:
        write_whole(Path(args.out), [report_html(overview)])
    _print(args, overview)
    if failed(overview):
        return exit_codes.NOT_DONE
    differs = any(one.differs for one in overview.clusters)
    return exit_codes.DIFFERENCES if args.detailed_exitcode and differs else exit_codes.DONE


def _read(args: argparse.Namespace) -> Overview:
    from reconciler.cli.progress import PatientProgress
    from reconciler.model.finding import Severity
    from reconciler.workflows.report import Asked, load_asked, make_report
    from reconciler.workflows.report_files import read_recorded
    from reconciler.workflows.system_clock import SystemClock
    from reconciler.workflows.trusted_files import trusted_files

    asked = Asked(
        paths=tuple(args.paths),
        cluster=args.cluster,
        access=options.access(args),
        baseline=args.baseline,
        trusted_ref=args.trusted_ref,
        fail_on=Severity(args.fail_on),
    )
    with PatientProgress(args) as progress:
        progress.step("reading the manifests")
        trusted = trusted_files(args.trusted_ref, args.paths[0]) if args.trusted_ref is not None else None
        recorded = read_recorded(args.audit, args.backtest, trusted=trusted)
        intents = load_asked(asked)
        return make_report(intents, asked, recorded=recorded, clock=SystemClock(), progress=progress)


def _print(args: argparse.Namespace, overview: Overview) -> None:
    from reconciler.render.report_page import report_html
    from reconciler.render.report_page_document import report_to_json
    from reconciler.render.report_page_text import report_lines

    written = args.out
    output.print_result(
        args,
        document=lambda: report_to_json(overview),
        lines=lambda: report_lines(overview, written=written),
        other=lambda _: report_html(overview),
    )
