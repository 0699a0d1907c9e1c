"""``kafka-quotas report``: one page with the state of all clusters. It never writes to one."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import ClusterArguments, typed
from reconciler.errors import ManifestError

if TYPE_CHECKING:
    from reconciler.features.insight.report.overview import Overview

_FORMATS: Final = ("text", "json", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportArguments(ClusterArguments):
    """The command line of ``report``."""

    out: tuple[str, ...]
    current: str | None
    baseline: str | None
    audit: tuple[str, ...]
    trusted_ref: str | None
    detailed_exitcode: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``report``."""
    options.add_path_argument(parser)
    parser.add_argument(
        "--audit", action="append", default=[], metavar="FILE", help="show the last runs of this audit file (repeatable)"
    )
    options.add_trusted_ref_option(parser)
    options.add_baseline_option(parser, also=", with {cluster} for the name of each cluster")
    options.add_cluster_option(parser, "show this Cluster manifest only [default: all]")
    options.add_connection_options(parser)
    options.add_current_option(
        parser, "show this snapshot instead of the live cluster, with {cluster} for the name of each cluster"
    )
    options.add_detailed_exitcode_option(parser, "exit 2 on drift, to which unmanaged entities do not belong")
    options.add_output_options(parser, formats=_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> ReportArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(ReportArguments, namespace)


def run(args: ReportArguments) -> int:
    """Read, write the page, print; 1 when a cluster could not be read, 2 for differences with ``--detailed-exitcode``."""
    from reconciler.features.insight.report.reading import has_failed
    from reconciler.files import write_whole

    options.check_one_state(args, args.current)
    files = output.parse_out(args.out, formats=_FORMATS)
    try:
        overview = _read(args)
    except ManifestError as error:
        if error.findings:
            output.print_findings(args, error.findings, to_stdout=args.format != "html")
        raise
    page = next((str(path) for name, path in files if name == "html"), None)
    for name, path in files:
        write_whole(path, [_as(name, overview, page)])
    _print(args, overview, page)
    if has_failed(overview):
        return exit_codes.NOT_DONE
    differs = any(cluster.differs for cluster in overview.clusters)
    return exit_codes.DIFFERENCES if args.detailed_exitcode and differs else exit_codes.DONE


def _read(args: ReportArguments) -> Overview:
    from reconciler.cli.progress import PatientProgress
    from reconciler.features.insight.report.reading import ReportRequest, load_report_intents, make_report
    from reconciler.features.insight.runs import read_runs
    from reconciler.workflows import SystemClock, read_trusted_files

    asked = ReportRequest(
        paths=tuple(args.paths),
        cluster=args.cluster,
        access=options.access(args, current=args.current),
        baseline=args.baseline,
        trusted_ref=args.trusted_ref,
    )
    with PatientProgress() as progress:
        progress.step("reading the manifests")
        trusted = read_trusted_files(args.trusted_ref, args.paths[0]) if args.trusted_ref is not None else None
        runs = read_runs(args.audit, trusted=trusted) if args.audit else None
        intents = load_report_intents(asked)
        return make_report(intents, asked, runs=runs, clock=SystemClock(), progress=progress)


def _as(name: str, overview: Overview, page: str | None) -> str:
    from reconciler.features.insight.report.document import overview_to_json
    from reconciler.features.insight.report.page import overview_lines, report_html
    from reconciler.formats import document_text
    from reconciler.render import plain

    if name == "json":
        return document_text(overview_to_json(overview))
    return report_html(overview) if name == "html" else plain(overview_lines(overview, written=page))


def _print(args: ReportArguments, overview: Overview, page: str | None) -> None:
    from reconciler.features.insight.report.document import overview_to_json
    from reconciler.features.insight.report.page import overview_lines

    output.print_result(
        args,
        document=lambda: overview_to_json(overview),
        lines=lambda: overview_lines(overview, written=page),
        other=lambda name: _as(name, overview, page),
    )
