"""Shell completion by argcomplete: the shell runs ``kafka-quotas`` at the Tab key, which prints the words that fit.

Of the alternatives, shtab writes static scripts, but none for fish.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from reconciler.cli.declaration import argument
from reconciler.cli.results import Result
from reconciler.model import EntityType, QuotaKey

_PROGRAM: Final = "kafka-quotas"

_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)
_KEYS: Final = tuple(key.value for key in QuotaKey)
_STATES: Final = ("current", "cluster", "manifests", "planned")

_Completer = Callable[..., Iterable[str]]


SHELLS: Final = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionArguments:
    """The command line of ``tool completion``."""

    shell: str = argument("SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def print_completion(args: CompletionArguments) -> Result:
    """Return the script that bash, zsh or fish evaluates once to complete the program's words."""
    from argcomplete.shell_integration import shellcode

    return Result(forms={"text": lambda: shellcode([_PROGRAM], shell=args.shell)})


def complete() -> None:
    """Print the words that fit the shell's ``COMP_LINE``, and end the process; nothing when no shell asks."""
    from argcomplete import autocomplete

    from reconciler.cli.main import build_parser, command_of

    parser = build_parser(command_of(_typed_words()), kind=argparse.ArgumentParser)
    for action in _actions(parser):
        if (completer := _COMPLETERS.get(next(reversed(action.option_strings), ""))) is not None:
            action.completer = completer  # type: ignore[attr-defined]  # argcomplete's way to name one
    autocomplete(parser, always_complete_options=False)


def _typed_words() -> list[str]:
    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 0)]
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        yield action
        for sub in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from _actions(sub)


def _listed(words: Iterable[str], end: str = "") -> _Completer:
    """Completes the last part of a list with commas."""

    def completer(prefix: str, **_: Any) -> list[str]:
        before = prefix[: prefix.rfind(",") + 1]
        named = {part.partition("=")[0] for part in before.split(",")}
        return [f"{before}{word}{end}" for word in words if word not in named]

    return completer


def _guards(**_: Any) -> Iterable[str]:
    from reconciler.policy import GUARDS

    return tuple(GUARDS)


def _states(prefix: str, **_: Any) -> list[str]:
    from argcomplete.completers import FilesCompleter

    files = FilesCompleter()(prefix)
    return [*(state for state in _STATES if state.startswith(prefix)), *files]


_COMPLETERS: Final[dict[str, _Completer]] = {
    "--name": _listed(_TYPES, "="),
    "--names": _listed(_TYPES, "="),
    "--defaults": _listed(_TYPES),
    "--any": _listed(_TYPES),
    "--named": _listed(_TYPES),
    "--prefix": _listed(_TYPES, "="),
    "--accept": _guards,
    "--add": _listed(_KEYS, "="),
    "--delete": _listed(_KEYS),
    "--state": _states,
    "--diff": _states,
}
"""Options whose values are lists, or may be files, of which the parser itself knows no choices."""
