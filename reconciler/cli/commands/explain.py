"""``kafka-quotas explain``: the reason for a finding, guard or class of drift, with an example."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainArguments(OutputArguments):
    """The command line of ``explain``."""

    id: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``explain``."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="the [id] of a finding, a guard, or a class of drift [default: list all]"
    )
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> ExplainArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(ExplainArguments, namespace)


def run(args: ExplainArguments) -> int:
    """Print one explanation, or without an id all of them in a line each."""
    from reconciler.documents import explanations_to_json
    from reconciler.render import explanation_lines, index_lines
    from reconciler.workflows import explain_id, explanations

    width = output.text_width(sys.stdout)
    chosen = [explain_id(args.id)] if args.id else list(explanations().values())
    output.print_result(
        args,
        document=lambda: explanations_to_json(chosen),
        lines=lambda: explanation_lines(chosen[0], width=width) if args.id else index_lines(chosen, width=width),
    )
    return exit_codes.DONE
