"""``kafka-quotas completion``: a script that lets a shell complete commands, options and their choices."""

from __future__ import annotations

import argparse
import sys

from reconciler.cli import exit_codes, options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``completion``."""
    from reconciler.cli.completion_scripts import SCRIPTS

    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=f"one of {', '.join(SCRIPTS)}")
    options.add_diagnosis_options(parser)
    parser.epilog = (
        'bash: eval "$(kafka-quotas completion bash)" in ~/.bashrc; zsh: save it as _kafka-quotas in a folder of $fpath; '
        "fish: save it as ~/.config/fish/completions/kafka-quotas.fish"
    )


def run(args: argparse.Namespace) -> int:
    """Print the script. It is static: no Python runs at every key press."""
    from reconciler.cli.completion_scripts import SCRIPTS
    from reconciler.cli.completion_words import word_tree

    sys.stdout.write(SCRIPTS[args.shell](word_tree()))
    sys.stdout.flush()
    return exit_codes.DONE
