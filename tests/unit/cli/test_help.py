"""The help of every command: sections in one order, formats once, examples that parse, lines that fit the terminal."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.declaration import SECTIONS
from reconciler.cli.main import build_parser
from reconciler.cli.parser import Parser
from reconciler.cli.registry import actions_of, command_groups, commands, find_command
from reconciler.hooks import Command
from tests.support.command import Done, invoke

DOCS = Path(__file__).parents[3] / "docs"
NAMES = ("", *(each for name in commands() for each in (name, *(f"{name} {action}" for action in actions_of(name)))))
"""Every command, the actions of sandbox, and the program itself."""


def parser_of(name: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = build_parser(name.split(maxsplit=1)[0] if name else None)
    for word in name.split():
        parser = next(a.choices[word] for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return parser


def command_named(name: str) -> Command:
    command = find_command(name)
    assert command is not None
    return command


def options_of(name: str) -> Iterator[argparse.Action]:
    yield from (action for action in parser_of(name)._actions if action.help not in (None, argparse.SUPPRESS))


def help_of(name: str, folder: Path, columns: int = 80) -> str:
    done = invoke(*name.split(), "--help", cwd=folder, env={"COLUMNS": str(columns)})
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.mark.parametrize("name", NAMES)
def test_the_short_help_fits_a_screen_and_has_options_of_the_long_one(name: str, tmp_path: Path) -> None:
    done = invoke(*name.split(), "-h", cwd=tmp_path, env={"COLUMNS": "80"})
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) <= 30
    assert done.out.startswith("usage: ")
    assert done.out.endswith(help_of(name, tmp_path).splitlines()[-1] + "\n")
    options = [line.split()[0] for line in done.out.partition("\nOptions:\n")[2].splitlines() if line.startswith("  -")]
    assert len(options) <= 8
    assert {option.rstrip(",") for option in options} <= {word for action in options_of(name) for word in action.option_strings}
    required = {action.option_strings[-1] for action in options_of(name) if action.option_strings and action.required}
    assert required <= set(options)


def titles(text: str) -> list[str]:
    return [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


def test_every_command_has_examples() -> None:
    assert [name for name in NAMES[1:] if len(command_named(name).examples) < 2] == []


@pytest.mark.parametrize("name", NAMES[1:])
def test_examples_parse_and_their_page_exists(name: str, tmp_path: Path) -> None:
    known = command_named(name)
    assert (DOCS / known.page).is_file()
    for _, line in known.examples:
        words = shlex.split(line)
        assert line.startswith(name)
        assert build_parser(words[0]).parse_args(words).command == words[0]
    assert help_of(name, tmp_path).endswith(f"Documentation: kafka-quotas explain {known.page.removesuffix('.md')}\n")


def test_the_program_lists_every_command_in_its_group(tmp_path: Path) -> None:
    text = help_of("", tmp_path)

    assert titles(text)[: len(command_groups())] == list(command_groups())
    for title, group in command_groups().items():
        section = text.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == list(group)


@pytest.mark.parametrize("name", ["apply", "backtest", "drift", "run"])
def test_own_options_stand_before_those_of_the_cluster_and_the_output(name: str, tmp_path: Path) -> None:
    found = titles(help_of(name, tmp_path))

    assert found[-1] == "Examples"
    assert found[:-1] == sorted(found[:-1], key=SECTIONS.index)


@pytest.mark.parametrize("name", ["", "apply", "backtest", "tool"])
@pytest.mark.parametrize("columns", [40, 200])
def test_no_line_but_of_an_example_is_wider_than_the_terminal(name: str, columns: int, tmp_path: Path) -> None:
    text = help_of(name, tmp_path, columns)

    broad = [line for line in text.splitlines() if len(line) > min(columns, 100) and not line.startswith("    kafka-quotas ")]
    # A word that is wider by itself stays whole, so that it can be copied.
    assert [line for line in broad if len(line.split()) > (1 if not line.lstrip().startswith("--") else 3)] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_default_stands_last_in_brackets(name: str) -> None:
    for action in options_of(name):
        text = str(action.help)
        assert "(default:" not in text, (name, action.dest)
        assert "[default: " not in text or text.endswith("]"), (name, action.dest)


@pytest.mark.parametrize("arguments", [(), ("-v",), ("sandbox",), ("-v", "sandbox")])
def test_no_command_prints_the_help_to_stderr_and_ends_with_64(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = invoke(*arguments, cwd=tmp_path)
    name = " ".join(word for word in arguments if word != "-v")

    assert (done.code, done.out) == (64, "")
    assert done.err == help_of(name, tmp_path)


def wrong(*arguments: str, cwd: Path) -> Done:
    done = invoke(*arguments, cwd=cwd)
    assert (done.code, done.out) == (64, "")
    assert len(done.err.splitlines()) <= 2
    return done


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plann",), "kafka-quotas: error: unknown command 'plann'. Did you mean 'plan'?"),
        (("aply", "--auto-approve"), "unknown command 'aply'. Did you mean 'apply'?"),
        (("VALIDATE",), "unknown command 'VALIDATE'. Did you mean 'validate'?"),
        (("xyzzy", "plan"), "unknown command 'xyzzy'. Run kafka-quotas --help for a list"),
        (("sandbox", "runn"), "kafka-quotas sandbox: error: unknown action 'runn'. Did you mean 'run'?"),
        (("plan", "--acept", "prune"), "kafka-quotas plan: error: unknown option '--acept'. Did you mean '--accept'?"),
        (("plan", "--Cluster=prod"), "unknown option '--Cluster'. Did you mean '--cluster'?"),
        (("apply", "--xyzzy"), "unknown option '--xyzzy'\n"),
        (("compact",), "the following arguments are required: --traffic"),
        (("compact", "--traffic", "logs"), "the following arguments are required: --folder"),
        (("plan", "--format", "jsn"), "argument --format: unknown value 'jsn'. Did you mean 'json'?"),
        (("tool", "clusters", "--format", "xyzzy"), "unknown value 'xyzzy'. Write one of text, json"),
        (("tool", "schema", "Plan"), "argument KIND: unknown value 'Plan'. Did you mean 'plan'?"),
        (("sandbox", "demo", "now"), "unexpected argument 'now'"),
        (("plan", "--accept", "prun"), "unknown guard 'prun'. Did you mean 'prune'?"),
        (("explain", "user-prefx"), "Did you mean 'user-prefix'?"),
        (("explain", "prun"), "Did you mean 'prune'?"),
        (("explain", "insync"), "Did you mean 'in-sync'?"),
    ],
)
def test_a_slip_of_the_keyboard_is_answered_with_the_right_word(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    assert words in wrong(*arguments, cwd=tmp_path).err


def test_a_word_that_controls_a_terminal_is_escaped(tmp_path: Path) -> None:
    for arguments in (("\x1b[2J",), ("plan", "--\x1b[2J"), ("plan", "--format", "\u202ejson"), ("tool", "schema", "a\nb")):
        assert all(letter.isprintable() or letter == "\n" for letter in wrong(*arguments, cwd=tmp_path).err)


def test_a_parser_has_no_other_command_than_the_chosen_one() -> None:
    parser = build_parser("plan")

    assert isinstance(parser, Parser)
    assert [list(a.choices) for a in parser._actions if isinstance(a, argparse._SubParsersAction)] == [["plan"]]
