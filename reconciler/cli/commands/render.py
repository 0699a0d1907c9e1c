"""``kafka-quotas tool render``: a saved plan, or the report of an apply, in another form, without manifests or a cluster."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import output, renderings
from reconciler.cli.declaration import argument
from reconciler.cli.option_groups import format_option, out_option
from reconciler.cli.results import OutFile, Result

if TYPE_CHECKING:
    from reconciler.model import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderArguments:
    """The command line of ``tool render``."""

    plan: str = argument(
        "PLAN", help="a saved plan (plan --out json=FILE), - for standard input, or with --format summary the JSON of apply"
    )
    format: str = format_option(renderings.PLAN_FORMATS)
    out: tuple[OutFile, ...] = out_option(renderings.PLAN_FORMATS)


def run(args: RenderArguments) -> Result:
    """Read and check the plan; exit 1 for a file that is not a plan or was changed by hand."""
    if args.format == "summary" and not args.out and args.plan != "-":
        text = output.read_file(Path(args.plan))
        if _is_report(text):
            return Result(forms={"summary": lambda: _summary_of_report(text, args.plan)})
    return renderings.result_of_plan(_read(args.plan))


def _is_report(text: str) -> bool:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "result" in document and "changes" in document


def _summary_of_report(text: str, name: str) -> str:
    from reconciler.documents import APPLY_SUMMARY
    from reconciler.render import apply_summary_view, view_markdown

    return view_markdown(apply_summary_view(APPLY_SUMMARY.read(text, name=name), name=name), budget=renderings.SUMMARY_BUDGET)


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
