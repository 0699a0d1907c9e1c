"""What argparse parsed fits the types of the commands' dataclasses, for every command and option."""

import argparse
import dataclasses
import importlib
import types
import typing

import pytest

from reconciler.cli.main import build_parser
from reconciler.cli.registry import commands

LEAST = {
    "revert": ("report.json",),
    "render": ("plan.json",),
    "verify-ref": ("refs/x", "--branch", "refs/heads/main", "--workflow", "a.yml"),
    "import": ("--from", "jikkou", "file.yaml"),
    "backtest": ("--traffic", "logs"),
    "doctor": ("--traffic", "logs"),
    "headroom": ("--traffic", "logs"),
    "compact": ("--traffic", "logs", "--folder", "cells"),
    "record": ("--traffic", "1=metrics+http://b1:7071/metrics", "--folder", "history"),
    "schema": ("Cluster",),
    "completion": ("bash",),
}
"""Arguments that a command cannot do without."""
LINES = [
    *((name, *LEAST.get(name, ())) for name in commands() if name not in ("sandbox", "traffic")),
    *(("sandbox", action) for action in ("start", "status", "stop", "demo")),
    ("sandbox", "run", "--", "true"),
    ("traffic", "check", "--traffic", "lake"),
]
NO_OPTIONS_OF_THEIR_OWN = {"help", "command", "verbose", "verbose_before", "log_format", "without_python_workers", "given_token"}


def module_of(command: str) -> types.ModuleType:
    return importlib.import_module(commands()[command].module)


def fits(value: object, kind: typing.Any) -> bool:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(isinstance(one, arguments[0]) for one in value)
    return type(value) is kind or isinstance(value, kind)


def types_of(kind: type) -> dict[str, typing.Any]:
    return typing.get_type_hints(kind)


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line[:2]))
def test_every_field_has_the_type_that_it_says(line: tuple[str, ...]) -> None:
    parsed = module_of(line[0]).parse(build_parser(line[0]).parse_args(list(line)))

    wrong = {
        name: getattr(parsed, name) for name, kind in types_of(type(parsed)).items() if not fits(getattr(parsed, name), kind)
    }
    assert wrong == {}


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line[:2]))
def test_every_option_is_a_field(line: tuple[str, ...]) -> None:
    namespace = build_parser(line[0]).parse_args(list(line))
    parsed = module_of(line[0]).parse(namespace)

    known = {field.name for field in dataclasses.fields(parsed)}
    assert set(vars(namespace)) - known <= NO_OPTIONS_OF_THEIR_OWN


def test_arguments_cannot_be_changed() -> None:
    parsed = module_of("plan").parse(build_parser("plan").parse_args(["plan"]))

    with pytest.raises(dataclasses.FrozenInstanceError):
        parsed.paths = ("elsewhere",)


def test_an_option_that_is_missing_is_an_error_and_not_none() -> None:
    with pytest.raises(TypeError, match="paths"):
        module_of("plan").parse(argparse.Namespace(format="text"))
