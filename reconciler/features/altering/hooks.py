"""What changes by hand add: the command alter."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="alter",
        group=CommandGroup.CHANGE,
        summary="Change the quotas of one entity by hand, and verify",
        module="reconciler.features.altering.command",
        page="describe-and-alter.md",
        examples=(
            ("Set one quota of a user", "alter quotas --name user=alice --add producer_byte_rate=10MiB"),
            ("Raise it for two hours", "alter quotas --name user=alice --add producer_byte_rate=50MiB --for 2h"),
        ),
        needs_reader=True,
        is_short=True,
    ),
)
