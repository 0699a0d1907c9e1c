"""The pages of all commands, from the parsers that read the command line: a list of them, and one page for each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from reconciler.cli.main import COMMANDS, build_parser

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

## All commands
"""


def commands_pages() -> dict[str, str]:
    """Markdown by path: the list, and a page for each command, in the order of ``--help``."""
    parsers = {name: _subparsers(build_parser(name))[name] for name in COMMANDS}
    items = [f"[{name}](commands/{name}.md)\n: {_first_sentence(parser)}\n" for name, parser in parsers.items()]
    tree = "```{toctree}\n:hidden:\n" + "\n".join(f"commands/{name}" for name in parsers) + "\n```\n"
    return {
        "commands.md": "\n".join((_HEAD, *items, tree)),
        **{f"commands/{name}.md": _page(name, parser) for name, parser in parsers.items()},
    }


def _first_sentence(parser: argparse.ArgumentParser) -> str:
    return _escaped(" ".join((parser.description or "").split()).split(". ")[0].removesuffix(".")) + "."


def _page(name: str, parser: argparse.ArgumentParser) -> str:
    parts = [f"# {name}\n", f"{_escaped(parser.description or '')}\n"]
    nested = _subparsers(parser)
    if nested:
        parts += [part for one, sub in nested.items() for part in (f"## {name} {one}\n", *_body(sub, level=3))]
    else:
        parts += _body(parser, level=2)
    return "\n".join((*parts, "[All commands and exit codes](../commands.md)\n"))


def _body(parser: argparse.ArgumentParser, *, level: int) -> Iterator[str]:
    usage = parser.format_usage().removeprefix("usage: ")
    yield f"```text\n{usage}```\n"
    if parser.epilog:
        yield f"```text\n{(parser.epilog % {'prog': parser.prog}).rstrip()}\n```\n"
    for group in parser._action_groups:
        entries = [
            _entry(parser, action)
            for action in group._group_actions
            if not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS
        ]
        if entries:
            title = (group.title or "options").capitalize()
            yield f"{'#' * level} {title}\n"
            if group.description:
                yield f"{_escaped(group.description)}\n"
            yield from entries


def _entry(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    shown = formatter._format_action_invocation(action)
    text = formatter._expand_help(action) if action.help else ""
    return f"`{shown}`\n: {_escaped(' '.join(text.split()))}\n"


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _escaped(text: str) -> str:
    for letter in "\\`*_[]<>|#":
        text = text.replace(letter, f"\\{letter}" if letter not in "<>" else {"<": "&lt;", ">": "&gt;"}[letter])
    return text
