"""A local Kafka with a cluster's version and state, for what a real broker is to check."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconciler.apply import ChunkLimits, split_into_requests
from reconciler.backends import BrokerCluster, ConnectionSettings, parse_servers
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS
from reconciler.features.sandbox.spec import SandboxSpec
from reconciler.model import Action, Alteration, Change, CurrentState, Entity, KeyChange, Quotas, Reason, escaped
from reconciler.ports import Progress, QuotaCluster
from reconciler.resolution import refusal
from reconciler.workflows import Seeded

_FIRST_WITHOUT_ZOOKEEPER: Final = 4
_BEFORE_4: Final = next(version for version in KAFKA_VERSIONS if version.startswith("3."))
_MANY_ENTITIES: Final = 20_000
_HEAP_MB: Final = 512
_LARGE_HEAP_MB: Final = 1024


def nearest_version(kafka_version: str | None) -> tuple[str, tuple[str, ...]]:
    """The pinned version nearest to a cluster's (``"3.6"``), and notes on what that leaves open."""
    major = (kafka_version or "").partition(".")[0]
    if not major.isascii() or not major.isdigit():
        return DEFAULT_KAFKA_VERSION, ("the cluster's Kafka version is not known",)
    version = DEFAULT_KAFKA_VERSION if int(major) >= _FIRST_WITHOUT_ZOOKEEPER else _BEFORE_4
    notes = (
        []
        if version.startswith(f"{kafka_version}.")
        else [f"the cluster runs Kafka {kafka_version}, which may check differently"]
    )
    if version == _BEFORE_4:
        notes.append("the local Kafka runs without ZooKeeper. A cluster that keeps its quotas in ZooKeeper has other checks")
    return version, tuple(notes)


@contextlib.contextmanager
def seeded_sandbox(kafka_version: str | None, current: CurrentState, *, progress: Progress) -> Iterator[Seeded]:
    """A sandbox of the pinned version nearest to a cluster's, with ``current``, for the length of the block."""
    version, notes = nearest_version(kafka_version)
    heap = _LARGE_HEAP_MB if len(current.entities) > _MANY_ENTITIES else _HEAP_MB
    with running(SandboxSpec(kafka_version=version, heap_mb=heap), progress=progress) as sandbox:
        settings = ConnectionSettings(servers=parse_servers((sandbox.bootstrap_servers,)))
        with contextlib.closing(BrokerCluster.open(settings)) as cluster:
            yield Seeded(
                kafka_version=version, cluster=cluster, notes=(*notes, *seed(cluster, current.entities, progress=progress))
            )


def seed(cluster: QuotaCluster, entities: Mapping[Entity, Quotas], *, progress: Progress) -> tuple[str, ...]:
    """Write a state to an empty cluster; a note on what it does not take: unknown types and keys, values that are refused now."""
    wanted: list[Change] = []
    refused: list[tuple[Entity, str | None]] = []
    for entity, quotas in entities.items():
        refusals = {key: refusal(Alteration(entity=entity, ops={key: value})) for key, value in sorted(quotas.items())}
        refused += ((entity, words) for words in refusals.values() if words is not None)
        keys = tuple(_setting(key, quotas[key]) for key, words in refusals.items() if words is None)
        if keys:
            wanted.append(Change(entity=entity, action=Action.CREATE, keys=keys))
    if wanted:
        progress.step(f"giving the local Kafka the cluster's state: {len(wanted)} entities")
    for request in split_into_requests(wanted, ChunkLimits()):
        results = cluster.alter([change.alteration() for change in request], validate_only=False)
        for change, result in zip(request, results, strict=True):
            if result.error_code:
                refused += ((change.entity, result.error) for _ in change.keys)
    return (_left_out(refused),) if refused else ()


def _setting(key: str, value: float) -> KeyChange:
    return KeyChange(key=key, before=None, after=value, reason=Reason.NOT_IN_CURRENT)


def _left_out(refused: Sequence[tuple[Entity, str | None]]) -> str:
    what = "1 value" if len(refused) == 1 else f"{len(refused)} values"
    entity, words = refused[0]
    example = f"{entity}: {escaped(words) if words else 'no reason given'}"
    return f"the local Kafka did not take {what} of the cluster's present state and checked without: {example}"
