"""Files that are given beside recorded traffic or a metrics server: a mapping of columns and metrics, and names of clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import UsageError
from reconciler.model import Entity
from reconciler.workflows.plan_effects import read_clients
from reconciler.workflows.trusted import TrustedTree

if TYPE_CHECKING:
    from reconciler.traffic import ClientNames, MetricRule, SessionOptions, TrafficMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlace:
    """Where Spark runs. ``conf``: settings as ``KEY=VALUE``, which win over those of the file ``properties``."""

    master: str | None = None
    remote: str | None = None
    memory: str = "2g"
    conf: tuple[str, ...] = ()
    properties: Path | None = None

    def session(self, *, small: bool = False, light: bool = False) -> SessionOptions:
        """The session for this traffic. Raises ``UsageError`` and ``TrafficError`` as ``read_spark_settings``."""
        from reconciler.traffic import SessionOptions, read_spark_settings

        settings = read_spark_settings(self.conf, self.properties)
        return SessionOptions(
            master=self.master, remote=self.remote, memory=self.memory, small=small, light=light, settings=settings
        )


def read_trusted_mapping(path: Path | None, trusted: TrustedTree | None) -> TrafficMapping | None:
    """The mapping, if there is any. With ``trusted`` it is the reference's.

    Raises ``ManifestError`` with all findings, ``TrafficError`` for a missing file, and
    ``UntrustedError`` for one that only the work tree has.
    """
    from reconciler.traffic import parse_mapping, read_mapping

    if path is None:
        return None
    if trusted is None:
        return read_mapping(path)
    content = trusted.files.read(str(path))
    return parse_mapping(content.content, content.source)


def metric_rules(mapping: TrafficMapping | None, *, what: str) -> tuple[MetricRule, ...]:
    """How series of other names are read. ``what`` the mapping is used for. Raises ``UsageError`` for a mapping of files."""
    if mapping is None:
        return ()
    if not mapping.metrics:
        raise UsageError(f"The mapping has columns of files. For {what}, write spec.metrics")
    return mapping.metrics


def names_of(entities: Iterable[Entity]) -> ClientNames:
    """The users and client-ids that entities name."""
    from reconciler.traffic import ClientNames

    some = tuple(entities)
    users, client_ids = (
        frozenset(name for entity in some if isinstance(name := entity.name(type_), str)) for type_ in ("user", "client-id")
    )
    return ClientNames(users=users, client_ids=client_ids)


def read_client_names(path: Path | None, trusted: TrustedTree | None = None) -> ClientNames:
    """The names of a file of ``--known-clients``; none without one.

    Raises ``FileAccessError``, and ``UntrustedError`` for a file of a pull request.
    """
    from reconciler.traffic import ClientNames

    if path is None:
        return ClientNames()
    if trusted is not None:
        trusted.files.require_same(str(path))
    return names_of(entity for entity, _ in read_clients(path))


def traffic_by_kind(arguments: Sequence[str], *, is_mapped: bool) -> tuple[tuple[str, ...], ...]:
    """Arguments of ``--traffic`` that can be read together. Raises ``TrafficError`` for a path without traffic."""
    from reconciler.traffic import find_traffic, parse_dataset

    if is_mapped or len(arguments) < 2:
        return (tuple(arguments),) if arguments else ()
    by_kind: dict[tuple[str, bool], list[str]] = {}
    for argument in arguments:
        is_dataset = parse_dataset(argument) is not None
        by_kind.setdefault((find_traffic([argument]).source.value, is_dataset), []).append(argument)
    return tuple(map(tuple, by_kind.values()))
