"""``kafka-quotas completion``: a script that lets a shell complete commands, options and their choices."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Final

from reconciler.cli import exit_codes, options
from reconciler.cli.arguments import typed

SHELLS: Final = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionArguments:
    """The command line of ``completion``."""

    shell: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``completion``."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    options.add_diagnosis_options(parser)


def parse(namespace: argparse.Namespace) -> CompletionArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(CompletionArguments, namespace)


def run(args: CompletionArguments) -> int:
    """Print the script."""
    from reconciler.cli.completion import script

    sys.stdout.write(script(args.shell))
    sys.stdout.flush()
    return exit_codes.DONE
