"""Limits beside what a long history used of them: which to raise, to lower or to drop, as edits of the manifests."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

NEEDS: Final = ("manifest_edits", "pull_requests")

COMMANDS: Final = (
    Command(
        name="rightsize",
        group=CommandGroup.CHECK,
        summary="Find limits to raise, to lower or to drop",
        description="Compare each declared limit with what a long history used of it, and propose better values. Every proposed "
        "value is backtested. Nothing is written without --write.",
        module="reconciler.features.rightsizing.command",
        page="backtest.md",
        examples=(
            ("Show which limits to change, by spec.traffic", "rightsize quotas --cluster prod"),
            ("Change the values in the manifests", "rightsize quotas --cluster prod --traffic history --write files"),
        ),
    ),
)
