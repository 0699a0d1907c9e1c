"""What goes wrong while a command cleans up after Ctrl-C is no error of its own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from reconciler.cli import exit_codes, main, registry
from reconciler.cli.results import Result
from reconciler.hooks import Command, CommandGroup


@dataclass(frozen=True)
class NoOptions:
    """Of a command without options."""


def cleans_up(args: NoOptions) -> Result:
    try:
        raise KeyboardInterrupt
    finally:
        raise RuntimeError("cannot join thread before it is started")


def fails(args: NoOptions) -> Result:
    try:
        raise ValueError("no interrupt")
    finally:
        raise RuntimeError("cannot join thread")


@pytest.mark.parametrize(
    ("work", "code", "words"),
    [(cleans_up, exit_codes.INTERRUPTED, "interrupted"), (fails, exit_codes.NOT_DONE, "internal error")],
)
def test_an_error_while_cleaning_up_after_ctrl_c_is_the_interrupt(work, code, words, monkeypatch, capsys) -> None:
    command: Any = ModuleType("reconciler.cli.commands.try_out")
    command.run, command.NoOptions = work, NoOptions
    monkeypatch.setitem(sys.modules, command.__name__, command)
    try_out = Command(name="try_out", group=CommandGroup.CHECK, summary="try", module=command.__name__)
    monkeypatch.setitem(registry.OF_CORE, try_out.name, try_out)

    assert main.main(["try_out"]) == code
    assert words in capsys.readouterr().err
