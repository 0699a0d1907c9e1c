"""The help of a parser: usage in one line, the arguments in sections, examples that can be copied, and the page to read."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from reconciler.cli.options import SECTIONS
from reconciler.cli.terminal import WITHOUT_SIZE, columns

if TYPE_CHECKING:
    from reconciler.cli.parser import Parser

PROGRAM: Final = "kafka-quotas"
DOCUMENTATION: Final = "docs/"
"""Where the pages of the documentation lie, below the root of the repository."""

_WIDEST: Final = 100
_NARROWEST: Final = 30
_ROOMY: Final = 58
_HELP_COLUMN: Final = 24
_NARROW_HELP_COLUMN: Final = 6
"""Where the text about an option begins; on a narrow terminal on a line of its own."""

_WORD: Final = re.compile(r"""(?:--\S+ (?=[^-]))?(?:"[^"]*"|'[^']*'|[^\s"'])+""")
"""A word of a shell command, with what is quoted in it, and after an option its value."""

_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_FORMS: Final = {"*": "[{} ...]", "?": "[{}]", "+": "{} ...", argparse.PARSER: "{} ..."}


def help_text(parser: Parser) -> str:
    """Everything about one command, as wide as the terminal, and at most 100 columns."""
    width = _width()
    parts = [usage_text(parser, width), _filled(parser.description or "", width)]
    parts += [_commands(title, commands, width) for title, commands in parser.groups.items()]
    parts.append(_sections(parser, width))
    parts += _closing(parser, width)
    return "\n".join(part for part in parts if part)


def usage_text(parser: Parser, width: int | None = None) -> str:
    """``usage: kafka-quotas backtest --traffic PATH [OPTION ...] [PATH ...]``: options that a command needs are spelled out.

    ``width``: columns of a line, by default those of the terminal.
    """
    words = (word.replace(" ", _NO_BREAK) for word in _usage(parser))
    return _filled(f"usage: {' '.join((parser.prog, *words))}", width or _width(), hanging=" " * 7)


def _width() -> int:
    return max(_NARROWEST, min(columns(sys.stdout) or WITHOUT_SIZE, _WIDEST) - 2)


def _usage(parser: Parser) -> Iterator[str]:
    actions = parser.arguments()
    yield from (f"{action.option_strings[0]} {action.metavar}" for action in actions if action.option_strings and action.required)
    yield "[OPTION ...]"
    yield from (_argument(action) for action in actions if not action.option_strings)


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


def _sections(parser: Parser, width: int) -> str:
    formatter = _Formatter(parser.prog, width=width, max_help_position=_HELP_COLUMN if width >= _ROOMY else _NARROW_HELP_COLUMN)
    for group, actions in sorted(parser.sections(), key=lambda one: SECTIONS.index(one[0].title or "")):
        formatter.start_section(group.title)
        formatter.add_text(group.description)
        formatter.add_arguments(actions)
        formatter.end_section()
    return formatter.format_help()


def _commands(title: str, commands: Mapping[str, str], width: int) -> str:
    rows = [f"{title}:\n"]
    for name, summary in commands.items():
        rows.append(_filled(summary, width, f"  {name:<12}", " " * 14))
    return "".join(rows)


def _closing(parser: Parser, width: int) -> Iterator[str]:
    from reconciler.cli.examples import EXAMPLES

    known = EXAMPLES.get(parser.prog.removeprefix(PROGRAM).strip())
    if known is None:
        return
    shown = [_filled(f"{what}:", width, "  ") + _command(f"{PROGRAM} {line}", width) for what, line in known.lines]
    yield "Examples:\n" + "".join(shown)
    if parser.groups:
        yield _filled(f"{PROGRAM} COMMAND --help shows the options and examples of a command.", width)
    yield _filled(f"Documentation: {DOCUMENTATION}{known.page}", width)


def _command(text: str, width: int) -> str:
    """One command, broken as a shell reads it."""
    rows = [" " * 4]
    for word in _WORD.findall(text):
        if len(rows[-1]) + len(word) > width - 2 and rows[-1].strip():
            rows[-1] += "\\"
            rows.append(" " * 8)
        rows[-1] += f"{word} "
    return "".join(f"{row.rstrip()}\n" for row in rows)


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
