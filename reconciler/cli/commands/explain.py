"""``kafka-quotas explain``: the reason for a finding, guard or class of drift, with an example."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from reconciler.cli import output
from reconciler.cli.declaration import argument
from reconciler.cli.option_groups import format_option
from reconciler.cli.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainArguments:
    """The command line of ``explain``."""

    id: str | None = argument("ID", nargs="?", help="the [id] of a finding, a guard, or a class of drift [default: list all]")
    format: str = format_option()


def run(args: ExplainArguments) -> Result:
    """One explanation, or without an id all of them in a line each."""
    from reconciler.documents import EXPLANATIONS, ExplanationList
    from reconciler.render import explanation_lines, index_lines
    from reconciler.workflows import explain_id, explanations

    width = output.text_width(sys.stdout)
    chosen = [explain_id(args.id)] if args.id else list(explanations().values())
    return Result(
        view=lambda: explanation_lines(chosen[0], width=width) if args.id else index_lines(chosen, width=width),
        document=lambda: EXPLANATIONS.write(ExplanationList(explanations=tuple(chosen))),
    )
