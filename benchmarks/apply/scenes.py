"""What a cluster has before a run, and what it must have after it: the same users as ``benchmarks.manifests`` writes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.manifests import user_of, values_of, write_manifests
from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
from reconciler.model.entity import Entity
from reconciler.model.plan import Alteration
from reconciler.model.state import Quotas

_ENTITIES_A_REQUEST = 2_500
_SHOWN_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What every program shall bring the cluster to: as manifests for us, as a table for the others."""

    entities: int
    manifests: Path
    table: Path


def write_wanted(folder: Path, *, entities: int) -> Wanted:
    """The same wish in both forms."""
    manifests = folder / f"manifests-{entities}"
    write_manifests(manifests, entries=entities, files=max(1, min(200, entities // 50)))
    table = folder / f"wanted-{entities}.tsv"
    with table.open("w", encoding="utf-8") as file:
        for number in range(entities):
            quotas = "\t".join(f"{key}={value}" for key, value in values_of(number).items())
            file.write(f"{user_of(number)}\t{quotas}\n")
    return Wanted(entities=entities, manifests=manifests, table=table)


def empty(_entities: int) -> dict[Entity, dict[str, float]]:
    """Nothing is there yet."""
    return {}


def done(entities: int) -> dict[Entity, dict[str, float]]:
    """Everything is as it shall be."""
    return {
        Entity.of({"user": user_of(number)}): {key: float(value) for key, value in values_of(number).items()}
        for number in range(entities)
    }


def one_percent_off(entities: int) -> dict[Entity, dict[str, float]]:
    """One user in a hundred has another value."""
    state = done(entities)
    for quotas in list(state.values())[::100]:
        quotas["producer_byte_rate"] *= 1.5
    return state


SCENES = {"from empty": empty, "1 % changed": one_percent_off, "nothing to do": done}


def bring(server: str, state: Mapping[Entity, Quotas]) -> None:
    """Make the cluster have exactly this, and wait until it shows it."""
    with contextlib.closing(_open(server)) as cluster:
        deadline = time.monotonic() + _SHOWN_WITHIN_S
        while alterations := _missing(state, cluster.current_state().entities):
            if time.monotonic() > deadline:
                raise SystemExit(f"the cluster does not show what was written: {alterations[0]}")
            for start in range(0, len(alterations), _ENTITIES_A_REQUEST):
                cluster.alter(alterations[start : start + _ENTITIES_A_REQUEST], validate_only=False)
            time.sleep(0.05)


def require(server: str, state: Mapping[Entity, Quotas], *, after: str) -> None:
    """End the benchmark when a program did not do what it was timed for."""
    with contextlib.closing(_open(server)) as cluster:
        deadline = time.monotonic() + _SHOWN_WITHIN_S
        while missing := _missing(state, cluster.current_state().entities):
            if time.monotonic() > deadline:
                raise SystemExit(f"{after} left {len(missing)} entities as they shall not be, {missing[0]} among them")
            time.sleep(0.05)


def _missing(state: Mapping[Entity, Quotas], live: Mapping[Entity, Quotas]) -> list[Alteration]:
    wrong = [Alteration(entity=entity, ops=dict(quotas)) for entity, quotas in state.items() if live.get(entity) != quotas]
    return wrong + [Alteration(entity=e, ops=dict.fromkeys(quotas)) for e, quotas in live.items() if e not in state]


def _open(server: str) -> BrokerCluster:
    return BrokerCluster.open(ConnectionSettings(servers=parse_servers((server,))))
