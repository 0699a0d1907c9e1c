"""``kafka-quotas render``: a saved plan, or the report of an apply, in another form, without manifests and without a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, options, output, renderings
from reconciler.cli.arguments import OutputArguments, typed

if TYPE_CHECKING:
    from reconciler.model import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderArguments(OutputArguments):
    """The command line of ``render``."""

    plan: str
    out: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``render``."""
    parser.add_argument(
        "plan",
        metavar="PLAN",
        help="a saved plan (plan --out json=FILE), - for standard input, or with --format summary the JSON of apply",
    )
    options.add_output_options(parser, formats=renderings.PLAN_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> RenderArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(RenderArguments, namespace)


def run(args: RenderArguments) -> int:
    """Read, check and print the plan; 0, or 1 for a file that is not a plan or was changed by hand."""
    files = output.parse_out(args.out, formats=renderings.PLAN_FORMATS)
    if args.format == "summary" and not files and args.plan != "-":
        text = output.read_file(Path(args.plan))
        if _is_report(text):
            output.print_text(_summary_of_report(text, args.plan), sys.stdout)
            return exit_codes.DONE
    plan = _read(args.plan)
    output.print_plan(args, plan, files)
    return exit_codes.DONE


def _is_report(text: str) -> bool:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "result" in document and "changes" in document


def _summary_of_report(text: str, name: str) -> str:
    from reconciler.documents import read_apply_summary
    from reconciler.render import apply_markdown, state_of_report

    summary = read_apply_summary(text, name=name)
    _, sentence = state_of_report(summary, name=name)
    return apply_markdown(summary, sentence, budget=renderings.SUMMARY_BUDGET)


def _read(name: str) -> Plan:
    from reconciler.documents import read_plan
    from reconciler.errors import FileAccessError

    if name != "-":
        return read_plan(output.read_file(Path(name)), name=name)
    try:
        return read_plan(sys.stdin.buffer.read().decode("utf-8"), name="standard input")
    except UnicodeDecodeError as error:
        msg = "cannot read standard input: not UTF-8 text"
        raise FileAccessError(msg) from error
