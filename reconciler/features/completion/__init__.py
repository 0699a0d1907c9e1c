"""Completion of commands, options and their values by a shell."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="tool completion",
        group=CommandGroup.REFERENCE,
        summary="Print the completion script for a shell",
        module="reconciler.features.completion.command:print_completion",
        page="install.md",
        examples=(
            ("bash: evaluate this output in ~/.bashrc", "tool completion bash"),
            ("fish: save this output as ~/.config/fish/completions/kafka-quotas.fish", "tool completion fish"),
        ),
    ),
)

COMPLETERS: Final = ("reconciler.features.completion.command:complete",)
