"""Client quotas over kafka-python's own messages, without the product's code: an independent witness of what a broker holds."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from reconciler.model.entity import DEFAULT, Entity
from tests.support.polling import wait_until

RawEntity = frozenset[tuple[str, str | None]]
"""Pairs of entity type and name; ``None`` is the default entity."""


def raw(state: Mapping[Entity, Mapping[str, float]]) -> dict[RawEntity, dict[str, float]]:
    """Quotas of the product's entities in the form of this module."""
    return {
        frozenset((kind, None if name is DEFAULT else name) for kind, name in entity.parts): dict(quotas)
        for entity, quotas in state.items()
    }


def _client(bootstrap_servers: str) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=bootstrap_servers.split(","))


def describe(bootstrap_servers: str) -> dict[RawEntity, dict[str, float]]:
    """Everything the broker has."""
    client = _client(bootstrap_servers)
    try:
        return _describe(client)
    finally:
        client.close()


def settled(bootstrap_servers: str, *, brokers: Sequence[int] = ()) -> dict[RawEntity, dict[str, float]]:
    """The same, with every write that was answered before in it, as all of ``brokers`` show it (any one, when none is given).

    Reads lag writes, and metadata applies in order: what is written here last is seen last.
    """
    client = _client(bootstrap_servers)
    last: RawEntity = frozenset({("client-id", f"written last {uuid.uuid4()}")})
    found: dict[int | None, dict[RawEntity, dict[str, float]]] = {}
    try:
        _alter(client, {last: {"producer_byte_rate": 1e9}}, brokers[0] if brokers else None)
        for broker in brokers or (None,):
            shown = wait_until(functools.partial(_describe_with, client, broker, last))
            assert shown is not None
            found[broker] = {entity: quotas for entity, quotas in shown.items() if entity != last}
        _alter(client, {last: {"producer_byte_rate": None}}, brokers[0] if brokers else None)
        for broker in brokers or (None,):
            wait_until(functools.partial(_is_gone, client, broker, last))
    finally:
        client.close()
    first, *others = found.values()
    assert all(other == first for other in others), "the brokers do not agree"
    return first


def alter(bootstrap_servers: str, changes: Mapping[RawEntity, Mapping[str, float | None]]) -> None:
    """Sets keys, or removes those given as ``None``; fails on the first refusal."""
    client = _client(bootstrap_servers)
    try:
        _alter(client, changes)
    finally:
        client.close()


def remove_all(bootstrap_servers: str) -> None:
    """Leaves the broker without any client quota, seen by a read after the write."""
    client = _client(bootstrap_servers)
    try:
        # Reads lag writes: the loop ends when a read shows nothing, and writes again what it still shows.
        while there := _describe(client):
            _alter(client, {entity: dict.fromkeys(quotas) for entity, quotas in there.items()})
    finally:
        client.close()


def _describe(client: KafkaAdminClient, broker: int | None = None) -> dict[RawEntity, dict[str, float]]:
    response = client._manager.run(client._manager.send, DescribeClientQuotasRequest(components=[], strict=False), broker)
    assert response.error_code == 0, response
    return {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {v.key: v.value for v in entry.values}
        for entry in response.entries
    }


def _alter(client: KafkaAdminClient, changes: Mapping[RawEntity, Mapping[str, float | None]], broker: int | None = None) -> None:
    row = AlterClientQuotasRequest.EntryData
    rows: list[Any] = [
        row(
            entity=[row.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[row.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops.items()],
        )
        for entity, ops in changes.items()
    ]
    # A request becomes one batch of records, of 8 MiB at most, and each key's record repeats the names.
    longest = max((len(name or "") for entity in changes for _, name in entity), default=0)
    step = 1000 if longest < 500 else 50
    for start in range(0, len(rows), step):
        request = AlterClientQuotasRequest(entries=rows[start : start + step], validate_only=False)
        response = client._manager.run(client._manager.send, request, broker)
        refused = [entry for entry in response.entries if entry.error_code != 0]
        assert not refused, refused[0]


def _describe_with(client: KafkaAdminClient, broker: int | None, entity: RawEntity) -> dict[RawEntity, dict[str, float]] | None:
    """``None`` until the broker shows the entity."""
    quotas = _describe(client, broker)
    return quotas if entity in quotas else None


def _is_gone(client: KafkaAdminClient, broker: int | None, entity: RawEntity) -> bool:
    return entity not in _describe(client, broker)
