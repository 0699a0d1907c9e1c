"""Steps that ``apply``, ``revert`` and ``alter`` share before they write: options, the shown plan, and the question."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import output
from reconciler.cli.declaration import option
from reconciler.cli.interrupts import INTERRUPTS
from reconciler.cli.option_groups import ACCEPT
from reconciler.errors import NotConfirmedError, UsageError

if TYPE_CHECKING:
    from reconciler.apply import ApplySettings, StepDown
    from reconciler.cli.progress import PatientProgress
    from reconciler.model import Plan
    from reconciler.ports import QuotaCluster

_LONGEST_WAIT: Final = 86_400.0
DEADLINE: Final = option(
    "--deadline",
    section="Steps",
    metavar="SECONDS",
    default=900.0,
    help="send no further request of a write after this time, without the waits between steps [default: 900]",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingOptions:
    """How a write is approved, and what is left of it in files."""

    expect_digest: str | None = option(
        "--expect-digest", section="Safety", metavar="DIGEST", help="refuse unless the plan has this digest"
    )
    accept: tuple[str, ...] = ACCEPT
    auto_approve: bool = option("--auto-approve", section="Safety", help="do not ask (needed without a terminal)")
    validate_only: bool = option(
        "--validate-only", section="Safety", help="let the cluster validate everything, and write nothing"
    )
    report: str | None = option(
        "--report", section="Output", metavar="FILE", help="write the report as JSON to this file, for revert"
    )
    audit: str | None = option(
        "--audit",
        section="Output",
        metavar="FILE",
        help="add one line of JSON to this file: user, time, cluster, and how the run ended",
    )

    def settings(self) -> ApplySettings:
        """How a run without a deadline writes."""
        from reconciler.apply import ApplySettings

        return interruptible(ApplySettings(validate_only=self.validate_only))


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWritingOptions(WritingOptions):
    """Also how a write of many changes goes on: in steps, and until when."""

    deadline: float = DEADLINE
    step_down: float | None = option(
        "--step-down",
        section="Steps",
        metavar="FACTOR",
        help="lower limits in steps of at most this factor, such as 2, and verify each step",
    )
    step_wait: float | None = option(
        "--step-wait", section="Steps", metavar="SECONDS", help="wait between two steps [default: 11]"
    )

    def settings(self) -> ApplySettings:
        """How the run writes. Raises ``UsageError`` for a deadline that is none."""
        from reconciler.apply import ApplySettings

        if not 1 <= self.deadline <= _LONGEST_WAIT:
            raise UsageError(f"--deadline takes seconds from 1 to {_LONGEST_WAIT:g}, not {self.deadline:g}")
        return interruptible(ApplySettings(validate_only=self.validate_only, run_seconds=self.deadline))

    def steps(self) -> StepDown | None:
        """How limits go down, when not at once. Raises ``UsageError``."""
        from reconciler.apply import WINDOW_SECONDS, StepDown

        if self.step_down is None:
            if self.step_wait is not None:
                raise UsageError("--step-wait needs --step-down FACTOR")
            return None
        if not 1.01 <= self.step_down < math.inf:
            msg = f"--step-down takes a factor from 1.01 on (2 halves a limit with each step), not {self.step_down:g}"
            raise UsageError(msg)
        wait = WINDOW_SECONDS if self.step_wait is None else self.step_wait
        if not 0 <= wait <= _LONGEST_WAIT:
            raise UsageError(f"--step-wait takes seconds from 0 to {_LONGEST_WAIT:g}, not {wait:g}")
        return StepDown(factor=self.step_down, wait_seconds=wait)


def interruptible(settings: ApplySettings) -> ApplySettings:
    """The settings of a run in the main thread that a signal ends, with a report of what was written."""
    return dataclasses.replace(settings, stop_wanted=INTERRUPTS.stop_wanted, breakable=INTERRUPTS.breakable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approver:
    """Shows plans to the person at the terminal, and asks. With ``as_json``, stdout belongs to the report."""

    write: WritingOptions
    as_json: bool
    progress: PatientProgress

    def show_findings(self, plan: Plan) -> None:
        """Print the findings of a plan as ``plan`` does, above the plan and the question."""
        with self.progress.silent():
            output.print_findings(plan.findings)

    def preview(self, plan: Plan) -> None:
        """Show a plan that is not going to be written."""
        with self.progress.silent():
            self._show(plan)

    def show_refused(self, plan: Plan) -> None:
        """Show a plan that is refused before a person was asked about it, where ``confirm`` would have shown it."""
        if not self._is_silent:
            self.preview(plan)

    def confirm(self, plan: Plan) -> bool:
        """Show the plan and ask; from a yes on, signals are noted. Raises ``NotConfirmedError`` without a terminal to ask at."""
        confirmed = self._ask(plan)
        if confirmed:
            INTERRUPTS.hold()
        return confirmed

    @property
    def _is_silent(self) -> bool:
        return output.is_quiet() and self.write.auto_approve

    def _show(self, plan: Plan) -> None:
        from reconciler.render import MANY_CHANGES, plan_view

        output.print_lines(plan_view(plan, most_changes=MANY_CHANGES).lines, sys.stderr if self.as_json else sys.stdout)

    def _ask(self, plan: Plan) -> bool:
        with self.progress.silent():
            if not self._is_silent:
                self._show(plan)
            if self.write.auto_approve:
                return True
            if os.environ.get("CI") or not sys.stdin.isatty():
                raise NotConfirmedError("this run has no terminal to ask at. Review the plan and pass --auto-approve")
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
