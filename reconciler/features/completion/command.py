"""``kafka-quotas tool completion``: a script that lets a shell complete commands, options and their choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.cli.declaration import argument
from reconciler.cli.results import Result

SHELLS: Final = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionArguments:
    """The command line of ``tool completion``."""

    shell: str = argument("SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def print_completion(args: CompletionArguments) -> Result:
    """The script."""
    from reconciler.features.completion.completer import script

    return Result(forms={"text": lambda: script(args.shell)})
