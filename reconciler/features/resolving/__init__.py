"""Effective quotas of clients, as a command shows them."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="resolve",
        group=CommandGroup.INSPECT,
        summary="Show which limits apply to a client, and why",
        module="reconciler.features.resolving.command",
        page="resolve.md",
        examples=(
            (
                "Show the limits of a client, and draw the precedence levels",
                "resolve quotas --name user=alice --name client-id=app --explain",
            ),
            ("Show the limits of every client once the manifests are applied", "resolve quotas --all --state planned"),
        ),
        is_short=True,
    ),
)
