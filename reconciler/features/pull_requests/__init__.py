"""Comments on pull requests and merge requests of GitHub and GitLab, and the stored references that their runs trust."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="comment",
        group=CommandGroup.REVIEW,
        summary="Post and update the comment on a pull request or merge request",
        module="reconciler.features.pull_requests.command",
        page="pull-requests.md",
        examples=(
            ("Post a plan with its backtest", "comment plan.json --backtest backtest.json"),
            ("Report the end of apply", "comment --report report.json"),
        ),
    ),
    Command(
        name="tool verify-ref",
        group=CommandGroup.REFERENCE,
        summary="Ask GitHub which run stored a git reference",
        module="reconciler.features.pull_requests.verify_ref",
        page="ci.md",
        examples=(
            (
                "Verify a stored snapshot, and write it to a file",
                "tool verify-ref refs/kafka-quotas/snapshot/prod --branch refs/heads/main --workflow apply.yml --snapshot a.json",
            ),
            (
                "Verify a baseline",
                "tool verify-ref refs/kafka-quotas/baseline/prod --branch refs/heads/main --workflow apply.yml",
            ),
        ),
    ),
)

RUN_CONTEXTS: Final = ("reconciler.features.pull_requests.posting:run_context",)
