"""What can be typed: the commands with their options and choices, read from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.model import EntityType, QuotaKey

_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)
_STATES: Final = ("current", "cluster", "manifests", "planned")
_LISTED: Final = {
    "--defaults": _TYPES,
    "--any": _TYPES,
    "--named": _TYPES,
    "--delete": tuple(key.value for key in QuotaKey),
    "--state": _STATES,
    "--diff": _STATES,
}
"""What may stand in options that take lists, or files too, of which the parser itself knows no choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionWords:
    """One option. ``choices``: what may follow, or begin what follows; empty for anything, and then files are offered."""

    flags: tuple[str, ...]
    summary: str
    takes_value: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWords:
    """One command, or the program itself (with an empty path). ``choices``: what its first argument may be."""

    path: tuple[str, ...]
    summary: str
    options: tuple[OptionWords, ...] = ()
    choices: tuple[str, ...] = ()
    commands: tuple[CommandWords, ...] = ()

    def walk(self) -> Iterator[CommandWords]:
        """The command itself and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def word_tree() -> CommandWords:
    """The program with all its commands; imports every command's module, and nothing that those import late."""
    from reconciler.cli.main import COMMANDS, build_parser

    commands = tuple(_words(_subparsers(build_parser(name))[name], (name,), summary) for name, summary in COMMANDS.items())
    top = _words(build_parser(None), (), "")
    return CommandWords(path=(), summary="", options=top.options, commands=commands)


def _words(parser: argparse.ArgumentParser, path: tuple[str, ...], summary: str) -> CommandWords:
    actions = parser._actions  # noqa: SLF001 - argparse has no public way to list them
    options = tuple(_option(action) for action in actions if action.option_strings and action.help != argparse.SUPPRESS)
    positional = [a for a in actions if not a.option_strings and a.choices and not isinstance(a, argparse._SubParsersAction)]  # noqa: SLF001 - the same
    choices = tuple(str(choice) for choice in positional[0].choices or ()) if positional else ()
    nested = tuple(_words(sub, (*path, name), sub.description or "") for name, sub in _subparsers(parser).items()) if path else ()
    return CommandWords(path=path, summary=summary, options=options, choices=choices, commands=nested)


def _option(action: argparse.Action) -> OptionWords:
    return OptionWords(
        flags=tuple(action.option_strings),
        summary=(action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%"),
        takes_value=action.nargs != 0,
        choices=tuple(str(choice) for choice in action.choices or _LISTED.get(action.option_strings[-1], ())),
    )


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
            return dict(action.choices)
    return {}
