"""Shell completion by argcomplete: the shell runs ``kafka-quotas`` at the Tab key, which prints the words that fit."""

from __future__ import annotations

import argparse
import os
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
    """Return the script that bash, zsh or fish evaluates once to complete the program's words."""
    from argcomplete.shell_integration import shellcode

    return Result(forms={"text": lambda: shellcode(["kafka-quotas"], shell=args.shell)})


def complete() -> None:
    """Print the words that fit the shell's ``COMP_LINE``, and end the process; nothing when no shell asks."""
    from argcomplete import autocomplete

    from reconciler.cli.main import build_parser, command_of

    typed = command_of(os.environ.get("COMP_LINE", "").split())
    autocomplete(build_parser(typed, kind=argparse.ArgumentParser), always_complete_options=False)
