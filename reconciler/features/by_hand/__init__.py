"""Changes by hand: one entity, for good or for a while, and the way back from a run."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

NEEDS: Final = ("manifest_edits",)

COMMANDS: Final = (
    Command(
        name="revert",
        group=CommandGroup.CHANGE,
        summary="Restore the quotas from before a run, and verify",
        module="reconciler.features.by_hand.revert_command",
        page="apply.md",
        examples=(
            ("Restore the quotas from before a run", "revert report.json quotas"),
            ("Let the cluster validate that, and write nothing", "revert report.json quotas --validate-only"),
        ),
        needs_reader=True,
        is_short=True,
    ),
    Command(
        name="alter",
        group=CommandGroup.CHANGE,
        summary="Change the quotas of one entity by hand, and verify",
        module="reconciler.features.by_hand.alter_command",
        page="describe-and-alter.md",
        examples=(
            ("Set one quota of a user", "alter quotas --name user=alice --add producer_byte_rate=10MiB"),
            ("Raise it for two hours", "alter quotas --name user=alice --add producer_byte_rate=50MiB --for 2h"),
        ),
        needs_reader=True,
        is_short=True,
    ),
)
