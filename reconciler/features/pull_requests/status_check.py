"""The status of one cluster on a commit, which a forge can require before it merges a pull request.

A status that lets a merge pass where ``apply`` would refuse the plan is worse than none: each case that is not known to be
harmless stops the merge.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.features.pull_requests.comment_verdict import CommentVerdict
from reconciler.model import Plan, display_name
from reconciler.render import shorten

_MOST_NAME: Final = 120


class Conclusion(enum.StrEnum):
    """What a forge may do with the pull request, in GitHub's words. The last two stop a merge that requires the status."""

    SUCCESS = "success"
    NEUTRAL = "neutral"
    """A reviewer decides: nothing was checked against traffic, or clients would be throttled and no rule forbids it."""
    ACTION_REQUIRED = "action_required"
    """A guard tripped that can be accepted."""
    FAILURE = "failure"
    """Errors, a guard that cannot be accepted, a rule that fails, or no plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCheck:
    """The status of one cluster. ``title``: one line. ``summary``: Markdown."""

    conclusion: Conclusion
    title: str
    summary: str = ""

    @property
    def passes(self) -> bool:
        """True when a branch that requires the status takes the pull request."""
        return self.conclusion in (Conclusion.SUCCESS, Conclusion.NEUTRAL)


NO_PLAN: Final = StatusCheck(
    conclusion=Conclusion.FAILURE, title="No plan", summary="No plan of this commit could be made. The log has the reason."
)
NOT_CHANGED: Final = StatusCheck(
    conclusion=Conclusion.SUCCESS, title="Not changed", summary="This commit does not change the cluster."
)


def status_name(cluster: str, label: str) -> str:
    """``kafka-quotas/prod-eu``, as a ruleset names it; a label stands behind it."""
    return f"kafka-quotas/{shorten(display_name(cluster), _MOST_NAME)}{f' ({label})' if label else ''}"


def check_of(plan: Plan | None, verdict: CommentVerdict, sentences: Sequence[str]) -> StatusCheck:
    """The status that goes with a comment. ``sentences``: those of its alert, in Markdown."""
    title = verdict.value.capitalize()
    return StatusCheck(conclusion=_conclusion(plan, verdict), title=title, summary=" ".join(sentences))


def _conclusion(plan: Plan | None, verdict: CommentVerdict) -> Conclusion:
    if verdict is CommentVerdict.BLOCKED:
        return Conclusion.FAILURE
    if plan is not None:
        guards = (*plan.tripped, *plan.withholding_guards)
        if plan.owner_errors or any(guard.blocks for guard in guards):
            return Conclusion.FAILURE
        if guards or plan.withheld or not plan.applyable:
            return Conclusion.ACTION_REQUIRED
    return Conclusion.SUCCESS if verdict in (CommentVerdict.READY, CommentVerdict.NO_CHANGE) else Conclusion.NEUTRAL
