"""Steps that ``apply``, ``revert`` and ``alter`` share before they write: options, the shown plan, and the question."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from reconciler.cli import options, output
from reconciler.cli.arguments import LongRunArguments, WritingArguments
from reconciler.cli.interrupts import INTERRUPTS
from reconciler.errors import NotConfirmedError, UsageError

if TYPE_CHECKING:
    from reconciler.apply import ApplySettings, StepDown
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import Plan
    from reconciler.ports import QuotaCluster

_LONGEST_WAIT: Final = 86_400.0


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    """How a write is approved, and what is left of it in files."""
    safety = options.section(parser, "Safety")
    safety.add_argument("--expect-digest", metavar="DIGEST", help="refuse unless the plan has this digest")
    options.add_accept_option(parser)
    safety.add_argument("--auto-approve", action="store_true", help="do not ask (needed without a terminal)")
    safety.add_argument("--validate-only", action="store_true", help="let the cluster validate everything, and write nothing")
    files = options.section(parser, "Output")
    files.add_argument("--report", metavar="FILE", help="write the report as JSON to this file, for revert")
    files.add_argument(
        "--audit", metavar="FILE", help="add one line of JSON to this file: user, time, cluster, and how the run ended"
    )


def add_long_run_options(parser: argparse.ArgumentParser) -> None:
    """How a write of many changes goes on: in steps, and until when."""
    steps = options.section(parser, "Steps")
    steps.add_argument(
        "--step-down",
        metavar="FACTOR",
        type=float,
        help="lower limits in steps of at most this factor, such as 2, and verify each step",
    )
    steps.add_argument("--step-wait", metavar="SECONDS", type=float, help="wait between two steps [default: 11]")
    add_deadline_option(parser, "send no further request after this time, without the waits between steps")


def add_deadline_option(parser: argparse.ArgumentParser, text: str, *, title: str = "Steps") -> None:
    """``--deadline``."""
    options.section(parser, title).add_argument(
        "--deadline", metavar="SECONDS", type=float, default=900.0, help=f"{text} [default: %(default)g]"
    )


def settings(args: LongRunArguments) -> ApplySettings:
    """How the run writes. Raises ``UsageError`` for a deadline that is none."""
    from reconciler.apply import ApplySettings

    if not 1 <= args.deadline <= _LONGEST_WAIT:
        raise UsageError(f"--deadline takes seconds from 1 to {_LONGEST_WAIT:g}, not {args.deadline:g}")
    return interruptible(ApplySettings(validate_only=args.validate_only, run_seconds=args.deadline))


def interruptible(settings: ApplySettings) -> ApplySettings:
    """The settings of a run in the main thread that a signal ends, with a report of what was written."""
    return dataclasses.replace(settings, stop_wanted=INTERRUPTS.stop_wanted, breakable=INTERRUPTS.breakable)


def step_down(args: LongRunArguments) -> StepDown | None:
    """How limits go down, when not at once. Raises ``UsageError``."""
    from reconciler.apply import WINDOW_SECONDS, StepDown

    if args.step_down is None:
        if args.step_wait is not None:
            raise UsageError("--step-wait needs --step-down FACTOR")
        return None
    if not 1.01 <= args.step_down < math.inf:
        raise UsageError(f"--step-down takes a factor from 1.01 on (2 halves a limit with each step), not {args.step_down:g}")
    wait = WINDOW_SECONDS if args.step_wait is None else args.step_wait
    if not 0 <= wait <= _LONGEST_WAIT:
        raise UsageError(f"--step-wait takes seconds from 0 to {_LONGEST_WAIT:g}, not {wait:g}")
    return StepDown(factor=args.step_down, wait_seconds=wait)


def show_plan(args: WritingArguments, plan: Plan) -> None:
    """Print a plan where people look; with JSON, stdout belongs to the report."""
    from reconciler.render import MANY_CHANGES, plan_view

    output.print_lines(
        args, plan_view(plan, most_changes=MANY_CHANGES).lines, sys.stderr if args.format == "json" else sys.stdout
    )


def show_findings(args: WritingArguments, plan: Plan, progress: PatientProgress) -> None:
    """Print the findings of a plan as ``plan`` does, above the plan and the question."""
    with progress.silent():
        output.print_findings(args, plan.findings, to_stdout=False)


def preview(args: WritingArguments, plan: Plan, progress: PatientProgress) -> None:
    """Show a plan that is not going to be written."""
    with progress.silent():
        show_plan(args, plan)


def show_refused(args: WritingArguments, plan: Plan, progress: PatientProgress) -> None:
    """Show a plan that is refused before a person was asked about it, where ``confirm`` would have shown it."""
    if not (args.quiet and args.auto_approve):
        preview(args, plan, progress)


def confirm(args: WritingArguments, plan: Plan, progress: PatientProgress | None = None) -> bool:
    """Show the plan and ask; from a yes on, signals are noted. Raises ``NotConfirmedError`` without a terminal to ask at."""
    confirmed = _ask(args, plan, progress)
    if confirmed:
        INTERRUPTS.hold()
    return confirmed


def _ask(args: WritingArguments, plan: Plan, progress: PatientProgress | None) -> bool:
    with progress.silent() if progress else contextlib.nullcontext():
        if not (args.quiet and args.auto_approve):
            show_plan(args, plan)
        if args.auto_approve:
            return True
        if os.environ.get("CI") or not sys.stdin.isatty():
            msg = "this run has no terminal to ask at. Review the plan and pass --auto-approve"
            raise NotConfirmedError(msg)
        print("Apply these changes? Only 'yes' is accepted: ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip() == "yes"


@contextlib.contextmanager
def given_back(cluster: QuotaCluster) -> Iterator[None]:
    """Close the connection at the end; an error while that goes on must not cost the report of what was written."""
    try:
        yield
    except BaseException:
        cluster.close()
        raise
    with contextlib.suppress(Exception):  # whatever breaks, there is nothing to give back any more
        cluster.close()
