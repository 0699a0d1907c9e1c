"""``kafka-quotas validate``: check manifests without a cluster."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import every_cluster, exit_codes, options, output, renderings
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from reconciler.formats import Json
    from reconciler.model import Span
    from reconciler.workflows import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateArguments(OutputArguments):
    """The command line of ``validate``."""

    paths: tuple[str, ...]
    cluster: str | None
    all_clusters: bool
    trusted_ref: str | None
    fail_on: str
    all_findings: bool
    out: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``validate``."""
    options.add_path_argument(parser)
    options.add_fail_on_option(parser)
    options.add_trusted_ref_option(parser)
    options.add_cluster_option(parser, "check for this Cluster manifest only [default: for every one]")
    options.add_all_clusters_option(parser, "check")
    options.section(parser, "Output").add_argument(
        "--all-findings", action="store_true", help="print every finding as text [default: the first 20 of a rule, and a count]"
    )
    options.add_output_options(parser, formats=renderings.VALIDATE_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> ValidateArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(ValidateArguments, namespace)


def run(args: ValidateArguments) -> int:
    """Print findings; 0, or 1 when one is at or above ``--fail-on``."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.documents import findings_to_json
    from reconciler.model import Severity
    from reconciler.render import validation_lines
    from reconciler.workflows import stop_on, validate_manifests

    files = output.parse_out(args.out, formats=renderings.VALIDATE_FORMATS)
    options.check_all_clusters(all_clusters=args.all_clusters, cluster=args.cluster)
    if args.all_clusters:
        return _every(args, files)
    with PatientProgress(args) as progress:
        progress.step("reading the manifests")
        checked = validate_manifests(args.paths, cluster=args.cluster, trusted_ref=args.trusted_ref)
    counts, width = _counts(checked), output.text_width(sys.stdout)
    output.write_findings(files, checked.findings, sources=lambda: _sources(args, checked))
    output.print_result(
        args,
        document=lambda: findings_to_json(checked.findings, counts),
        lines=lambda: validation_lines(
            checked.findings, **counts, sources=_sources(args, checked), width=width, every=args.all_findings
        ),
        other=lambda name: renderings.findings_as(name, checked.findings),
    )
    output.note_findings_printed()
    stop_on(checked.findings, Severity(args.fail_on))
    return exit_codes.DONE


def _every(args: ValidateArguments, files: Sequence[tuple[str, Path]]) -> int:
    from reconciler.cli.progress import PatientProgress
    from reconciler.documents import clusters_to_json, findings_to_json
    from reconciler.model import Severity, display_name
    from reconciler.render import Style, join_parts, line, validation_lines
    from reconciler.workflows import stop_on, validate_every

    if files:
        raise UsageError("--all-clusters and --out exclude each other. Without --all-clusters every cluster is checked, too")
    every_cluster.check_formats(args)
    with PatientProgress(args) as progress:
        progress.step("reading the manifests")
        checked = validate_every(args.paths, trusted_ref=args.trusted_ref)

    width = output.text_width(sys.stdout)

    def document(name: str, validation: Validation) -> Json:
        return {**findings_to_json(validation.findings, _counts(validation)), "cluster": name}

    output.print_result(
        args,
        document=lambda: clusters_to_json(document(name, validation) for name, validation in checked),
        lines=lambda: join_parts(
            [
                (
                    line((f"Cluster {display_name(name)}", Style.STRONG)),
                    *validation_lines(
                        validation.findings,
                        **_counts(validation),
                        sources=_sources(args, validation),
                        width=width,
                        every=args.all_findings,
                    ),
                )
                for name, validation in checked
            ]
        ),
    )
    output.note_findings_printed()
    stop_on([finding for _, validation in checked for finding in validation.findings], Severity(args.fail_on))
    return exit_codes.DONE


def _sources(args: ValidateArguments, checked: Validation) -> Mapping[Span, str]:
    from reconciler.render import shown_findings
    from reconciler.workflows import source_lines

    return source_lines(shown_findings(checked.findings, every=args.all_findings), checked.read)


def _counts(checked: Validation) -> dict[str, int]:
    return {"files": checked.files, "clusters": checked.clusters, "entities": checked.entities}
