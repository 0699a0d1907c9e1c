"""The weight of the project, and the way of one value through it, stay within the budget of ``budget.toml``."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
import tomllib
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import build_parser
from reconciler.cli.parser import Parser
from reconciler.cli.registry import commands
from reconciler.collector import pause_collector
from reconciler.features.sandbox.spec import Sandbox
from tests.support.manifests import PLAIN_CLUSTER, PLAIN_QUOTAS, snapshot

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "reconciler"
TABLE = Path(__file__).with_name("budget.toml")
BUDGET = tomllib.loads(TABLE.read_text("utf-8"))
LOG = ROOT / "tests/traffic/recordings/kafka-4.3.1/kafka-request.log.gz"

PROGRAM = """
import json, os, sys, threading
from reconciler.cli.main import entry_point
root = os.path.dirname(sys.modules["reconciler"].__file__)
entered = set()
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(root) and code.co_name[0] != "<":
        entered.add((code.co_filename, code.co_name, code.co_firstlineno))
threading.setprofile(note)
sys.setprofile(note)
try:
    entry_point()
except SystemExit as leaving:
    sys.setprofile(None)
    files = len({file for file, _, _ in entered})
    sys.stderr.write("\\n" + json.dumps([leaving.code, len(entered), files]))
"""
"""Counts functions that begin to run: no bodies of classes (flag 1), no comprehensions and lambdas."""


def over(name: str, measured: int, most: int, *where: str) -> str:
    text = f"{name}: {measured:,}, and the budget is {most:,}. Remove some, or raise it in {TABLE.name} with the reason"
    return "\n  ".join([text, *where])


def lines(folder: Path, *suffixes: str) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in folder.rglob("*") if path.suffix in suffixes)


@functools.cache
@pause_collector()
def large_definitions() -> dict[type[ast.stmt], list[str]]:
    """Dataclasses with many fields and functions with many parameters. Both are statements: no expression is looked into."""
    large: dict[type[ast.stmt], list[str]] = {ast.ClassDef: [], ast.FunctionDef: []}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in statements(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list):
                fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part)]
                if len(fields) > 15:
                    large[ast.ClassDef].append(f"{path.relative_to(ROOT)}: {node.name} has {len(fields)}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                if len(names := {each.arg for each in given} - {"self", "cls"}) > 7:
                    large[ast.FunctionDef].append(f"{path.relative_to(ROOT)}: {node.name} has {len(names)}")
    return large


def statements(tree: ast.AST) -> list[ast.AST]:
    nodes = [tree]
    for node in nodes:
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            nodes += part if isinstance(part := getattr(node, name, None), list) else ()
    return nodes


def options() -> int:
    """Those that the helps of commands and of their actions list, and once those of every command."""
    listed = (action for parser in parsers(build_parser(None)) for _, actions in parser.sections() for action in actions)
    return sum(bool(action.option_strings) and action.help != SUPPRESS for action in listed)


def parsers(program: ArgumentParser) -> Iterator[Parser]:
    """The program, and each command and action below it."""
    assert isinstance(program, Parser)
    yield program
    for name in commands():
        yield from below(build_parser(name), name)


def below(parser: ArgumentParser, name: str) -> Iterator[Parser]:
    assert isinstance(parser, Parser)
    chosen = parser.commands.choices[name]
    yield chosen
    for action in chosen.commands.choices if chosen.commands is not None else ():
        yield from below(chosen, action)


MEASURES: dict[str, Callable[[], int | list[str]]] = {
    "lines of reconciler": lambda: lines(PACKAGE, ".py"),
    "lines of reconciler outside features": lambda: lines(PACKAGE, ".py") - lines(PACKAGE / "features", ".py"),
    "modules of reconciler": lambda: len(list(PACKAGE.rglob("*.py"))),
    "lines of JavaScript and CSS": lambda: lines(PACKAGE, ".js", ".css"),
    "dataclasses of more than 15 fields": lambda: large_definitions()[ast.ClassDef],
    "functions of more than 7 parameters": lambda: large_definitions()[ast.FunctionDef],
    "commands": lambda: len(commands()),
    "options of all commands": options,
    "lines of tests": lambda: lines(ROOT / "tests", ".py"),
    "lines of benchmarks": lambda: lines(ROOT / "benchmarks", ".py"),
    "bytes of pyproject.toml": lambda: (ROOT / "pyproject.toml").stat().st_size,
}


@pytest.mark.parametrize("name", MEASURES)
def test_no_weight_is_above_its_budget(name: str) -> None:
    measured = MEASURES[name]()
    where = measured if isinstance(measured, list) else []
    count = len(measured) if isinstance(measured, list) else measured
    assert count <= BUDGET["size"][name], over(name, count, BUDGET["size"][name], *where)


def check_road(command: str, *arguments: str, cwd: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, command, *arguments]
    plain = {"HOME": str(cwd), "PATH": os.environ["PATH"], "TERM": "dumb"}
    done = subprocess.run(program, cwd=cwd, env=plain, capture_output=True, text=True, check=False)
    code, functions, files = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    most_functions, most_files = BUDGET["road"][command]
    assert functions <= most_functions, over(f"functions that {command} enters", functions, most_functions)
    assert files <= most_files, over(f"files that {command} enters", files, most_files)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/c.yaml").write_text(PLAIN_CLUSTER, "utf-8")
    (tmp_path / "m/q.yaml").write_text(PLAIN_QUOTAS, "utf-8")
    (tmp_path / "now.json").write_text(snapshot({}), "utf-8")
    return tmp_path


def test_a_plan_of_one_plain_quota_enters_what_it_needs(folder: Path) -> None:
    check_road("plan", "m", "--cluster", "c1", "--current", "now.json", cwd=folder)


def test_validation_of_one_plain_quota_enters_what_it_needs(folder: Path) -> None:
    check_road("validate", "m", cwd=folder)


def test_a_backtest_of_one_log_enters_what_it_needs(folder: Path) -> None:
    check_road("backtest", "m", "--cluster", "c1", "--current", "now.json", "--traffic", str(LOG), cwd=folder)


@pytest.mark.kafka
def test_an_apply_of_one_plain_quota_enters_what_it_needs(folder: Path, clean_kafka: Sandbox) -> None:
    (folder / "m/c.yaml").write_text(PLAIN_CLUSTER.replace("127.0.0.1:9092", clean_kafka.bootstrap_servers), "utf-8")
    check_road("apply", "m", "--cluster", "c1", "--auto-approve", "--accept", "too-many-changes", cwd=folder)
