"""What features add to the core. A feature is one folder of ``reconciler.features``, and its ``__init__.py`` lists what it adds.

The core asks here and imports no feature. That file imports nothing but this module and names the rest as ``module:name``,
so that a command which uses no feature loads none. Without its folder, a feature is not there, and neither is one that lists it
in ``NEEDS``: the features that it imports.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from enum import StrEnum
from types import ModuleType
from typing import Any, NamedTuple


class CommandGroup(StrEnum):
    """The titles in ``--help``, in their order."""

    START = "Get started"
    CHECK = "Check a change"
    CHANGE = "Change a cluster"
    INSPECT = "Inspect a cluster"
    REVIEW = "Pull requests and CI"
    REFERENCE = "Reference"


class Command(NamedTuple):
    """A command: its line in ``--help``, and where its work is. ``tool schema`` is the action ``schema`` of ``tool``."""

    name: str
    group: CommandGroup
    summary: str
    module: str = ""
    """Where ``run`` is, or another function as ``module:function``. Empty for a command that only has actions.

    The type of its argument is a dataclass of options (``reconciler.cli.declaration``), and it returns a ``Result``.
    """

    page: str = ""
    """Of the documentation, where its help leads to."""

    examples: tuple[tuple[str, str], ...] = ()
    """At the end of its help: what an example does, and its arguments."""

    description: str = ""
    """What its own help begins with, where that is more than the summary."""

    is_service: bool = False
    """Whether it runs until a signal, and writes its own log."""

    needs_reader: bool = False
    """Whether it writes to a cluster: it stops, or reports it, when nothing reads the plan or the result."""

    keeps_files: bool = False
    """Whether files of ``--out`` stay as they were when findings stop the command."""

    is_short: bool = False
    """Whether it reads, compares, writes and ends, so that looking for cycles in memory only costs time."""


def added(kind: str) -> Iterator[Any]:
    """Yield the values that features list under a name, such as ``COMMANDS``, in the order of the features' names.

    ``CONTRIBUTING.md`` lists the names, and who asks for each. A value that is loaded when it is needed is ``module:name``.
    """
    for feature in _features():
        yield from vars(feature).get(kind, ())


def load(place: str) -> Any:
    """The object at ``module:name``, imported now."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@functools.cache
def _features() -> tuple[ModuleType, ...]:
    try:
        package = importlib.import_module("reconciler.features")
    except ModuleNotFoundError:
        return ()
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    features = {name: importlib.import_module(f"reconciler.features.{name}") for name in names}
    while missing := [name for name in features if not features.keys() >= set(vars(features[name]).get("NEEDS", ()))]:
        for name in missing:
            del features[name]
    return tuple(features.values())
