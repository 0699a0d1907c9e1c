"""Converts parsed arguments to typed values: each command reads its options from one dataclass.

Options that most commands share are fields of base classes. They form one line, because a slotted class has one slotted base.
"""

from __future__ import annotations

import argparse
import inspect
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


def typed(kind: type[T], namespace: argparse.Namespace) -> T:
    """An instance of the dataclass ``kind`` with a field for each option, by the option's ``dest``; lists become tuples.

    A field that the chosen action of a command has no option for keeps its default. Raises ``TypeError`` when it has none.
    """
    values = {name: value for name, value in vars(namespace).items() if name in inspect.signature(kind).parameters}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputArguments:
    """The options of ``options.add_output_options``. ``format``: one of the command."""

    format: str


class ConnectionArguments(Protocol):
    """The options of ``options.add_connection_options``."""

    @property
    def bootstrap_server(self) -> str | None:
        """``host:port,...``."""

    @property
    def zookeeper(self) -> str | None:
        """``host:port/chroot``."""

    @property
    def command_config(self) -> str | None:
        """A file of Kafka's client properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArguments(OutputArguments):
    """Also the options of ``options.add_path_argument`` and ``add_cluster_options``; a ``ConnectionArguments``."""

    paths: tuple[str, ...]
    cluster: str | None
    bootstrap_server: str | None
    zookeeper: str | None
    command_config: str | None
