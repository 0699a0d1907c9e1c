"""What going back adds: the command revert."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="revert",
        group=CommandGroup.CHANGE,
        summary="Restore the quotas from before a run, and verify",
        module="reconciler.features.reverting.command",
        page="apply.md",
        examples=(
            ("Restore the quotas from before a run", "revert report.json quotas"),
            ("Let the cluster validate that, and write nothing", "revert report.json quotas --validate-only"),
        ),
        needs_reader=True,
        is_short=True,
    ),
)
