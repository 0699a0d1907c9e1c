"""``kafka-quotas render``: a saved plan in another form, without manifests and without a cluster."""

from __future__ import annotations

import argparse
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
    parser.add_argument("plan", metavar="PLAN", help="a saved plan (plan --out json=FILE), or - for standard input")
    options.add_output_options(parser, formats=renderings.PLAN_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> RenderArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(RenderArguments, namespace)


def run(args: RenderArguments) -> int:
    """Read, check and print the plan; 0, or 1 for a file that is not a plan or was changed by hand."""
    files = output.parse_out(args.out, formats=renderings.PLAN_FORMATS)
    plan = _read(args.plan)
    output.print_plan(args, plan, files)
    return exit_codes.DONE


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
