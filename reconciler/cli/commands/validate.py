"""``kafka-quotas validate``: check manifests without a cluster."""

from __future__ import annotations

import argparse

from reconciler.cli import exit_codes, options, output, renderings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``validate``."""
    options.add_path_argument(parser)
    parser.add_argument("--cluster", metavar="NAME", help="check for this Cluster document only (default: for every one)")
    options.add_fail_on_option(parser)
    options.add_output_options(parser, formats=renderings.FINDINGS_FORMATS)


def run(args: argparse.Namespace) -> int:
    """Print findings; 0, or 1 when one is at or above ``--fail-on``."""
    from reconciler.model.finding import Severity
    from reconciler.render.findings_document import findings_to_json
    from reconciler.render.findings_text import validation_lines
    from reconciler.workflows.load import stop_on
    from reconciler.workflows.validate import validate

    checked = validate(args.paths, cluster=args.cluster)
    counts = {"files": checked.files, "clusters": checked.clusters, "entities": checked.entities}
    output.print_result(
        args,
        document=lambda: findings_to_json(checked.findings, counts),
        lines=lambda: validation_lines(checked.findings, **counts),
        other=lambda name: renderings.findings_as(name, checked.findings),
    )
    stop_on(checked.findings, Severity(args.fail_on))
    return exit_codes.DONE
