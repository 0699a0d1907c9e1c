"""The pages of all commands, from the parsers that read the command line: a list of them, and one page for each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reconciler.cli.declaration import COMMON, SECTIONS
from reconciler.cli.main import build_parser
from reconciler.cli.parser import Parser
from reconciler.cli.registry import command_groups, commands, find_command
from reconciler.hooks import Command

_DOCS: Final = Path(__file__).parents[2] / "docs"

_HEAD: Final = """\
# Commands

```console
$ kafka-quotas plan --help
```

Results go to stdout. With `--format json` they are exactly one [document](documents.md). Progress and warnings go to stderr.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | could not finish, nothing written: findings at or above `--fail-on`, refused by the broker's validation, unreachable |
| 2 | differences, only with `--detailed-exitcode` |
| 3 | refused: a guard, a stale plan, the wrong cluster, a lock, no confirmation |
| 4 | something was written, and the run did not complete or could not be verified |
| 64 | wrong usage |
| 130 | interrupted before writing |
"""


def commands_pages() -> dict[str, str]:
    """Markdown by path: the list, and a page for each command, in the order of ``--help``."""
    parsers = {name: _subparsers(build_parser(name))[name] for name in commands()}
    items = [
        part
        for title, commands in command_groups().items()
        for part in (f"## {title}\n", *map(_item, commands, commands.values()))
    ]
    tree = "```{toctree}\n:hidden:\n" + "\n".join(f"commands/{name}" for name in parsers) + "\n```\n"
    return {
        "commands.md": "\n".join((_HEAD, *items, *_common_options(), tree)),
        **{f"commands/{name}.md": _page(name, parser) for name, parser in parsers.items()},
    }


def _common_options() -> Iterator[str]:
    program = build_parser(None)
    assert isinstance(program, Parser)
    for group, actions in program.sections():
        if group.title == COMMON:
            yield f"## {COMMON}\n"
            yield from (_entry(program, action) for action in actions)


def _item(name: str, summary: str) -> str:
    return f"[{name}](commands/{name}.md)\n: {_escaped(summary)}.\n"


def _page(name: str, parser: Parser) -> str:
    parts = [f"# kafka-quotas {name}\n", f"{_escaped(parser.description or '')}\n"]
    nested = _subparsers(parser)
    for one, sub in nested.items():
        parts += [f"## {name} {one}\n", f"{_escaped(sub.description or '')}\n", *_body(sub, f"{name} {one}", level=3)]
    if not nested:
        parts += _body(parser, name, level=2)
    page = _command(name).page
    return "\n".join((*parts, f"[{_title(page)}](../../{page}) · [All commands and exit codes](../commands.md)\n"))


def _body(parser: Parser, name: str, *, level: int) -> Iterator[str]:
    yield f"```text\n{parser.format_usage().removeprefix('usage: ')}```\n"
    lines = "\n\n".join(f"# {what}\nkafka-quotas {line}" for what, line in _command(name).examples)
    yield f"```sh\n{lines}\n```\n"
    for group, actions in sorted(parser.sections(), key=lambda one: SECTIONS.index(one[0].title or "")):
        entries = [_entry(parser, one) for one in actions if one.help != argparse.SUPPRESS]
        if entries:
            yield f"{'#' * level} {group.title}\n"
            if group.description:
                yield f"{_escaped(group.description)}\n"
            yield from entries


def _command(name: str) -> Command:
    command = find_command(name)
    assert command is not None  # a name of the registry
    return command


def _title(page: str) -> str:
    return (_DOCS / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _entry(parser: Parser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    shown = formatter._format_action_invocation(action)
    text = formatter._expand_help(action) if action.help else ""
    return f"`{shown}`\n: {_escaped(' '.join(text.split()))}\n"


def _subparsers(parser: Parser) -> dict[str, Parser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _escaped(text: str) -> str:
    for letter in "\\`*_[]<>|#":
        text = text.replace(letter, f"\\{letter}" if letter not in "<>" else {"<": "&lt;", ">": "&gt;"}[letter])
    return text
