"""The page of all commands, from the parsers that read the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from reconciler.cli.main import COMMANDS, build_parser

_HEAD: Final = """\
# Commands

`kafka-quotas COMMAND --help` says the same as this page. Results go to stdout (`--format json` is exactly one document, see
[documents](documents.md)), progress and warnings to stderr.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | could not finish, nothing written: findings at or above `--fail-on`, refused by the broker's validation, unreachable |
| 2 | differences, only with `--detailed-exitcode` |
| 3 | refused: a guard, a stale plan, the wrong cluster, a lock, nobody to ask |
| 4 | something was written, and the run did not complete or could not be verified |
| 64 | wrong usage |
| 130 | interrupted before writing |
"""


def commands_page() -> str:
    """Markdown, a chapter a command, in the order of ``--help``."""
    return "\n".join((_HEAD, *(_chapter(name) for name in COMMANDS)))


def _chapter(name: str) -> str:
    parser = _subparsers(build_parser(name))[name]
    nested = _subparsers(parser)
    parts = [f"## {name}\n", f"{_escaped(parser.description or '')}\n"]
    if nested:
        parts += [part for one, sub in nested.items() for part in (f"### {name} {one}\n", *_body(sub))]
    else:
        parts += _body(parser)
    return "\n".join(parts)


def _body(parser: argparse.ArgumentParser) -> Iterator[str]:
    usage = parser.format_usage().removeprefix("usage: ")
    yield f"```text\n{usage}```\n"
    rows = [_row(parser, action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    if rows:
        yield "| argument | what |\n|---|---|\n" + "\n".join(rows) + "\n"


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    shown = formatter._format_action_invocation(action)
    text = formatter._expand_help(action) if action.help else ""
    return f"| {_code(shown)} | {_escaped(text)} |"


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _escaped(text: str) -> str:
    for letter in "\\`*_[]<>|#":
        text = text.replace(letter, f"\\{letter}" if letter not in "<>" else {"<": "&lt;", ">": "&gt;"}[letter])
    return text
