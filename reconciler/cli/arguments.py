"""From what argparse parsed to typed values: each command has one dataclass of its options, and reads nothing else."""

from __future__ import annotations

import argparse
import inspect
from typing import Protocol, TypeVar

T = TypeVar("T")


def typed(kind: type[T], namespace: argparse.Namespace) -> T:
    """An instance of the dataclass ``kind`` with a field for each option, by the option's ``dest``; lists become tuples.

    A field that the chosen action of a command has no option for keeps its default. Raises ``TypeError`` when it has none.
    """
    values = {name: value for name, value in vars(namespace).items() if name in inspect.signature(kind).parameters}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


class OutputArguments(Protocol):
    """The options of ``options.add_output_options``."""

    @property
    def format(self) -> str:
        """One of the formats of the command."""

    @property
    def color(self) -> str:
        """``auto``, ``always`` or ``never``."""

    @property
    def quiet(self) -> bool:
        """No progress on stderr."""


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


class EntityArguments(Protocol):
    """The options of ``entity_options.add_entity_options``."""

    @property
    def entity_name(self) -> tuple[str, ...]:
        """``TYPE=NAME``."""

    @property
    def entity_names(self) -> tuple[str, ...]:
        """``TYPE=NAME,...``."""

    @property
    def entity_defaults(self) -> tuple[str, ...]:
        """``TYPE,...``."""


class FilterArguments(EntityArguments, Protocol):
    """The options of ``entity_options.add_filter_options``, beside those of one entity."""

    @property
    def entity_any(self) -> tuple[str, ...]:
        """``TYPE,...``."""

    @property
    def entity_named(self) -> tuple[str, ...]:
        """``TYPE,...``."""

    @property
    def entity_prefix(self) -> tuple[str, ...]:
        """``TYPE=PREFIX``."""

    @property
    def entity_strict(self) -> bool:
        """No other type may be present."""


class WritingArguments(OutputArguments, ConnectionArguments, Protocol):
    """The options of ``writing.add_writing_options``, for commands that write to a cluster."""

    @property
    def auto_approve(self) -> bool:
        """Do not ask."""

    @property
    def validate_only(self) -> bool:
        """Write nothing."""

    @property
    def report(self) -> str | None:
        """Where to write the report."""

    @property
    def audit(self) -> str | None:
        """Where to add a line."""


class LongRunArguments(WritingArguments, Protocol):
    """The options of ``writing.add_long_run_options``."""

    @property
    def deadline(self) -> float:
        """Seconds."""

    @property
    def step_down(self) -> float | None:
        """The largest factor of a step."""

    @property
    def step_wait(self) -> float | None:
        """Seconds between two steps."""
