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


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTrafficArguments(ClusterArguments):
    """Also ``--traffic``, the options that ``traffic_options`` adds except times, and ``options.add_current_option``."""

    traffic: tuple[str, ...]
    current: str | None
    kafka_version: str | None
    log_timezone: str
    mapping: str | None
    max_unreadable: float
    master: str | None
    remote: str | None
    memory: str
    conf: tuple[str, ...]
    properties_file: str | None
    window_samples: int | None
    window_seconds: int | None
    controller_window_samples: int | None
    controller_window_seconds: int | None
    quota_callback: str | None
    match: tuple[str, ...]
    http_config: str | None
    traffic_store: str | None
    known_clients: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingArguments(ClusterArguments):
    """Also the options of ``writing.add_writing_options`` and ``options.add_trusted_ref_option``."""

    trusted_ref: str | None
    expect_digest: str | None
    accept: tuple[str, ...]
    auto_approve: bool
    validate_only: bool
    report: str | None
    audit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRunArguments(WritingArguments):
    """Also the options of ``writing.add_long_run_options``; ``deadline`` and ``step_wait`` in seconds."""

    deadline: float
    step_down: float | None
    step_wait: float | None


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
