"""What argparse parsed fits the types of the commands' dataclasses, for every command and option."""

import argparse
import dataclasses
import types
import typing
from collections.abc import Iterator

import pytest

from reconciler.cli.declaration import AddedGroups, Option, OptionGroup, read
from reconciler.cli.main import build_parser, work_of
from reconciler.cli.registry import actions_of, commands, find_command

LEAST = {
    "revert": ("report.json",),
    "compact": ("--traffic", "logs", "--folder", "cells"),
    "record": ("--traffic", "1=metrics+http://b1:7071/metrics", "--folder", "history"),
    "tool render": ("plan.json",),
    "tool verify-ref": ("refs/x", "--branch", "refs/heads/main", "--workflow", "a.yml"),
    "tool schema": ("Cluster",),
    "tool completion": ("bash",),
}
"""Arguments that a command cannot do without."""
NAMES = [name for one in commands() for name in ([f"{one} {action}" for action in actions_of(one)] or [one])]
NO_OPTIONS_OF_THEIR_OWN = {"command", "action", "verbose", "verbose_before", "color", "quiet", "log_format"}


def fits(value: object, kind: typing.Any) -> bool:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(one, arguments[0]) for one in value)
    if dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        return isinstance(value, kind) and wrong_fields(value) == {}
    return type(value) is kind or isinstance(value, kind)


def wrong_fields(parsed: object) -> dict[str, object]:
    kinds = typing.get_type_hints(type(parsed))
    return {name: getattr(parsed, name) for name, kind in kinds.items() if not fits(getattr(parsed, name), kind)}


def options_of(kind: type) -> Iterator[str]:
    for field in dataclasses.fields(kind):
        if isinstance(field.default, OptionGroup):
            yield from options_of(field.default.kind)
        elif isinstance(field.default, AddedGroups):
            for each in field.default.kinds:
                yield from options_of(each)
        else:
            assert isinstance(field.default, Option), field.name
            yield field.name


def parsed_by(name: str) -> tuple[argparse.Namespace, type]:
    command = find_command(name)
    assert command is not None
    words = name.split()
    return build_parser(words[0]).parse_args([*words, *LEAST.get(name, ())]), work_of(command)[1]


@pytest.mark.parametrize("name", NAMES)
def test_every_field_has_the_type_that_it_says(name: str) -> None:
    namespace, kind = parsed_by(name)

    assert wrong_fields(read(kind, namespace)) == {}


@pytest.mark.parametrize("name", NAMES)
def test_every_field_declares_one_option_of_its_own_name(name: str) -> None:
    namespace, kind = parsed_by(name)

    names = list(options_of(kind))
    assert len(names) == len(set(names))
    assert vars(namespace).keys() - set(names) <= NO_OPTIONS_OF_THEIR_OWN
