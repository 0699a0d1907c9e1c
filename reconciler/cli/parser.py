"""The parser of the command line and its help: options between arguments, errors that suggest the right word.

The help shows the usage in one line, the arguments in sections, examples that can be copied, and the page to read.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NoReturn, TextIO

from reconciler.cli import exit_codes
from reconciler.cli.declaration import COMMON, SECTIONS

PROGRAM: Final = "kafka-quotas"
_EXAMPLES: Final = (
    ("Try everything on a local Kafka", "sandbox demo"),
    ("Show the changes that apply would make", "plan quotas --cluster prod"),
)
_FIRST: Final = (
    *("--name", "--traffic", "--set", "--add", "--delete", "--folder", "--current", "--since", "--until", "--plan", "--apply"),
    *("--cluster", "--all-clusters", "--bootstrap-server", "--state", "--all", "--baseline", "--accept", "--auto-approve"),
    *("--report", "--details", "--show-effects", "--detailed-exitcode", "--format", "--out"),
)
"""The options that most need, the first ones first; the short help of a command shows those that it has, eight at most."""
_SHORT: Final = 8
_ASIDE: Final = re.compile(r"\. |: | \(| \[|, or |, such as ")
"""Where the first clause of an option's help ends."""

_WIDEST: Final = 100
_NARROWEST: Final = 30
_ROOMY: Final = 58
_HELP_COLUMN: Final = 24
_NARROW_HELP_COLUMN: Final = 6
"""Where the text about an option begins; on a narrow terminal on a line of its own."""

_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_FORMS: Final = {"*": "[{} ...]", "?": "[{}]", "+": "{} ...", argparse.PARSER: "{} ..."}


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors exit with 64 (2 means differences here), and that takes options between arguments, too."""

    listed: Callable[[], Mapping[str, Mapping[str, str]]] | None = None
    """Gives the commands of the program in groups, each with its summary. A parser knows the options of the chosen one only."""

    commands: Any = None
    """Argparse's action that chooses a command, where this parser has commands."""

    _mixing = False

    def __init__(self, **options: Any) -> None:
        # Any text for usage: else each run of a command would format the usage once. A width: else argparse asks for that of the
        # terminal with each argument that is added.
        formatter = partial(argparse.HelpFormatter, width=WITHOUT_SIZE)
        super().__init__(usage="", formatter_class=formatter, **{"add_help": False, **options})
        self._positionals.title = "Arguments"
        self._optionals.title = "Options"

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the command line; print the help and exit with 64 when a command of commands is alone."""
        given = sys.argv[1:] if args is None else list(args)
        parsed, unknown = self.parse_known_args(given, namespace)
        chosen = self.chosen(parsed)
        if unknown:
            chosen.error(chosen.unknown_arguments(unknown))
        if chosen.commands is not None:
            chosen.print_help(sys.stderr)
            chosen.exit(exit_codes.USAGE)
        return parsed

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse ``REPORT --cluster X PATH`` as ``--cluster X REPORT PATH``, wherever a command has no commands of its own."""
        given = sys.argv[1:] if args is None else list(args)
        if self._mixing:
            return super().parse_known_args(given, namespace)
        if self.commands is not None or {"-h", "--help", "--"} & set(given):
            return super().parse_known_args(given, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(given, namespace)
        finally:
            self._mixing = False

    def add_subparsers(self, **options: Any) -> Any:
        """Let the parser have commands."""
        self.commands = super().add_subparsers(**options)
        return self.commands

    def chosen(self, parsed: argparse.Namespace) -> Parser:
        """The parser of the command that was chosen, or of the command below that one."""
        name = getattr(parsed, self.commands.dest, None) if self.commands is not None else None
        if name is None:
            return self
        command: Parser = self.commands.choices[name]
        return command.chosen(parsed)

    def sections(self) -> Iterator[tuple[argparse._ArgumentGroup, list[argparse.Action]]]:
        """Each section of the help with its options and arguments, but not the commands in groups.

        Options of every command are only among those of the program.
        """
        for group in self._action_groups:
            if group.title == COMMON and not self.listed:
                continue
            within = [action for action in self._actions if getattr(action, "container", None) is group]
            yield group, [action for action in within if not (self.listed and action is self.commands)]

    def format_help(self) -> str:
        """The help for the width of the terminal: own options first, those of the connection and the output last."""
        return _help_text(self)

    def print_short_help(self) -> None:
        """Print the help that fits a screen."""
        self._print_message(_help_text(self, is_short=True), sys.stdout)

    def format_usage(self) -> str:
        """Return ``usage: kafka-quotas compact --traffic PATH [OPTION ...]``: options that a command needs are spelled out."""
        words = [
            f"{action.option_strings[0]} {action.metavar}"
            for action in self._actions
            if action.option_strings and action.required
        ]
        words += ["[OPTION ...]", *(_argument(action) for action in self._actions if not action.option_strings)]
        shown = (word.replace(" ", _NO_BREAK) for word in (self.prog, *words))
        return _filled(f"usage: {' '.join(shown)}", _width(), hanging=" " * 7)

    def unknown_arguments(self, words: Iterable[str]) -> str:
        """A message for words that no option or argument takes."""
        from reconciler.text import near_miss, shown

        unknown = [word for word in words if word.startswith("-")] or list(words)
        word = unknown[0].partition("=")[0]
        if not word.startswith("-"):
            return f"unexpected argument {shown(word)}"
        known = [name for action in self._actions if action.help != argparse.SUPPRESS for name in action.option_strings]
        return f"unknown option {shown(word)}{near_miss(word, known)}"

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message to stderr; exit 64."""
        from reconciler.model import escaped

        self.print_usage(sys.stderr)
        self.exit(exit_codes.USAGE, f"{self.prog}: error: {escaped(message)}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from reconciler.text import near_miss, shown

        named = [name for group in (self.listed() if self.listed else {}).values() for name in group]
        known = [str(choice) for choice in (named or action.choices)]
        near = near_miss(str(value), known)
        if action is self.commands:
            see = f". Run {self.prog} --help for a list"
            raise argparse.ArgumentError(None, f"unknown {str(action.metavar).lower()} {shown(str(value))}{near or see}")
        choices = f". Write one of {', '.join(known)}"
        raise argparse.ArgumentError(action, f"unknown value {shown(str(value))}{near or choices}")


def _help_text(parser: Parser, *, is_short: bool = False) -> str:
    """Return all help of one command, as wide as the terminal, and at most 100 columns; or what fits a screen.

    That is the purpose, the options that most need, or the commands, and two examples.
    """
    from reconciler.cli.registry import find_command

    width = _width()
    sections = sorted(parser.sections(), key=lambda section: SECTIONS.index(section[0].title or ""))
    groups = parser.listed() if parser.listed else {}
    lists = [f"{title}:\n" + _rows(commands.items(), width, 12) for title, commands in groups.items()]
    more = f"{PROGRAM} --help shows the options of every command: --color, --quiet, --verbose, --log-format."
    if parser.listed:
        more = f"{PROGRAM} COMMAND --help shows the options and examples of a command."
    formatter = _Formatter(parser.prog, width=width, max_help_position=_HELP_COLUMN if width >= _ROOMY else _NARROW_HELP_COLUMN)
    if not is_short:
        for group, actions in sections:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(actions)
            formatter.end_section()
    elif groups:
        names = ((f"{title}:", ", ".join(commands)) for title, commands in groups.items())
        lists = [_rows(names, width, 22, indent="")]
    elif parser.commands is not None:
        lists = [_rows(((name, each.description or "") for name, each in parser.commands.choices.items()), width, 14)]
    else:
        actions = [action for _, each in sections for action in each]
        own = {each.option_strings[-1]: each for each in actions if each.option_strings and each.help != argparse.SUPPRESS}
        first = (*(name for name in own if own[name].required), *(name for name in _FIRST if name in own), *own)
        formatter.start_section("Options")
        formatter.add_arguments(_first_clause(own[name]) for name in tuple(dict.fromkeys(first))[:_SHORT])
        formatter.end_section()
        more = f"All {len(own)} options: {parser.prog} --help" if own else more
    command = find_command(parser.prog.removeprefix(PROGRAM).strip())
    page, examples = (command.page, command.examples) if command is not None else ("index.md", _EXAMPLES)
    shown = "".join(_filled(f"{what}:", width, "  ") + f"    {PROGRAM} {line}\n" for what, line in examples)
    closing = _filled(more, width) + _filled(f"Documentation: {PROGRAM} explain {page.removesuffix('.md')}", width)
    parts = (parser.format_usage(), _filled(parser.description or "", width), *lists, formatter.format_help())
    return "\n".join(part for part in (*parts, f"Examples:\n{shown}", closing) if part)


def _rows(pairs: Iterable[tuple[str, str]], width: int, column: int, *, indent: str = "  ") -> str:
    """Words behind names, which take ``column`` cells."""
    hanging = " " * (len(indent) + column + 1)
    return "".join(_filled(words, width, f"{indent}{name:<{column}} ", hanging) for name, words in pairs)


def _first_clause(action: argparse.Action) -> argparse.Action:
    short = copy.copy(action)
    short.help = _ASIDE.split(str(action.help))[0]
    return short


def _width() -> int:
    return max(_NARROWEST, min(columns(sys.stdout) or WITHOUT_SIZE, _WIDEST) - 2)


def _argument(action: argparse.Action) -> str:
    # While argparse parses options between arguments, it keeps the number of an argument's words elsewhere.
    nargs = getattr(action, "save_nargs", None) if action.nargs == argparse.SUPPRESS else action.nargs
    return _FORMS.get(str(nargs), "{}").format(action.metavar)


class _Formatter(argparse.HelpFormatter):
    """Lines break at spaces only, so that an option stays whole."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _filled(text, width).splitlines()

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return _filled(text, width, indent).rstrip("\n")


def _filled(text: str, width: int, indent: str = "", hanging: str | None = None) -> str:
    rows = textwrap.wrap(
        text.replace("[default: ", f"[default:{_NO_BREAK}"),
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "".join(f"{row}\n" for row in rows).replace(_NO_BREAK, " ")


WITHOUT_SIZE: Final = 80
"""Columns of a terminal that does not report how wide it is."""


def columns(stream: TextIO) -> int | None:
    """``COLUMNS`` where it is set, else the columns of the terminal that ``stream`` is; ``None`` when it is none."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isascii() and wanted.isdigit() and int(wanted[:6]):
        return int(wanted[:6])
    if not stream.isatty():
        return None
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(stream.fileno()).columns or WITHOUT_SIZE
    return WITHOUT_SIZE
