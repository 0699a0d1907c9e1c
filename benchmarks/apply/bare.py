"""The least that Python can do with the same files, one step after the other, and nothing else: no comparison, no report.

Compose the YAML, describe, validate only, write, describe again once the broker shows what was written last (reads lag writes,
by seconds when there is much). Requests are as large as ours.

``python -m benchmarks.apply.bare library|own SERVER FOLDER``: messages of kafka-python, or written and read by our own code.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import yaml
from kafka import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.backends.broker.settings import ConnectionSettings, parse_servers
from reconciler.model.entity import Entity
from reconciler.model.plan import Alteration
from reconciler.ports import EntityFilter, FilterComponent, FilterKind

_ENTITIES_A_REQUEST = 2_500
_MIB = 1024**2
_LAG_S = 0.1
_MOST_BYTES = 256 * 1024**2

Quotas = Mapping[str, float]
Rows = Sequence[tuple[str, Quotas]]


class Wire(Protocol):
    """A user's quotas to a broker and back."""

    def describe(self, user: str | None = None) -> int: ...

    def alter(self, rows: Rows, *, validate_only: bool) -> None: ...


class Library:
    """With kafka-python's message classes."""

    def __init__(self, server: str) -> None:
        self._client = KafkaAdminClient(bootstrap_servers=server, receive_message_max_bytes=_MOST_BYTES)

    def describe(self, user: str | None = None) -> int:
        component = DescribeClientQuotasRequest.ComponentData
        components = [] if user is None else [component(entity_type="user", match_type=0, match=user)]
        answer = self._send(DescribeClientQuotasRequest(components=components, strict=False))
        return len({e.entity[0].entity_name: {v.key: v.value for v in e.values} for e in answer.entries})

    def alter(self, rows: Rows, *, validate_only: bool) -> None:
        row = AlterClientQuotasRequest.EntryData
        entries = [
            row(
                entity=[row.EntityData(entity_type="user", entity_name=user)],
                ops=[row.OpData(key=key, value=value, remove=False) for key, value in quotas.items()],
            )
            for user, quotas in rows
        ]
        answer = self._send(AlterClientQuotasRequest(entries=entries, validate_only=validate_only))
        assert not any(entry.error_code for entry in answer.entries)

    def _send(self, request: Any) -> Any:
        return self._client._manager.run(self._client._manager.send, request)  # noqa: SLF001 - its only way for these requests


class Own:
    """With the code of ``apply``, which is the fastest that we know."""

    def __init__(self, server: str) -> None:
        self._cluster = BrokerCluster.open(ConnectionSettings(servers=parse_servers((server,))))

    def describe(self, user: str | None = None) -> int:
        components = () if user is None else (FilterComponent(entity_type="user", kind=FilterKind.EXACT, name=user),)
        return len(self._cluster.describe(EntityFilter(components=components)))

    def alter(self, rows: Rows, *, validate_only: bool) -> None:
        alterations = [Alteration(entity=Entity(parts=(("user", user),)), ops=quotas) for user, quotas in rows]
        assert not any(result.error_code for result in self._cluster.alter(alterations, validate_only=validate_only))


def main(how: str, server: str, folder: str) -> None:
    gc.disable()
    rows = [row for file in sorted(Path(folder).glob("team-*.yaml")) for row in _composed(file)]
    wire: Wire = Library(server) if how == "library" else Own(server)
    wire.describe()
    for validate_only in (True, False):
        for start in range(0, len(rows), _ENTITIES_A_REQUEST):
            wire.alter(rows[start : start + _ENTITIES_A_REQUEST], validate_only=validate_only)
    while not wire.describe(rows[-1][0]):
        time.sleep(_LAG_S)
    assert wire.describe() == len(rows)


def _composed(file: Path) -> Iterator[tuple[str, Quotas]]:
    """``match: {user: NAME}`` and ``quotas: {KEY: nMiB}``, in the form in which this benchmark writes them."""
    with file.open("rb") as stream:
        root: Any = yaml.compose(stream, Loader=yaml.CSafeLoader)
    for entry in root.value[-1][1].value[0][1].value:
        (_, match), (_, quotas) = entry.value
        yield match.value[0][1].value, {k.value: float(int(v.value.removesuffix("MiB")) * _MIB) for k, v in quotas.value}


if __name__ == "__main__":
    main(*sys.argv[1:])
