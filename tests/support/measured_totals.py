"""Clients that send as fast as brokers let them, on three brokers with declared totals, and the bytes that each broker counts.

An *even* client waits for its slowest partition, as a producer with keys does. A *free* one sends to each broker as fast as that
broker allows. Brokers have a window of three samples of a second, so that half a minute has ten of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support.partition_senders import FastSender, sending
from tests.support.polling import wait_until
from tests.support.recorded_seconds import logged_requests

TOTAL: Final = 1_572_864
"""1.5 MiB/s, of each client."""
BALANCED: Final = (1, 1, 2, 2, 3, 3)
SKEWED: Final = (1, 1, 1, 2, 2, 3)
"""Leaders of the partitions of a topic."""
KEY: Final = "producer_byte_rate"
MEASURED: Final = SandboxSpec(
    nodes=3, heap_mb=320, request_log=True, properties={"quota.window.num": "3", "quota.window.size.seconds": "1"}
)
_BATCH: Final = 40_000
_WARM_UP_S: Final = 6
_SECONDS: Final = 30


def placed(leaders: tuple[int, ...]) -> dict[int, list[int]]:
    """The replicas of each partition."""
    return {partition: [leader] for partition, leader in enumerate(leaders)}


def senders_of(sandbox: Sandbox, client_id: str, topic: str, leaders: tuple[int, ...], *, even: bool) -> Iterator[FastSender]:
    """One sender for all partitions, or one for each broker."""
    servers = {node.id: f"127.0.0.1:{node.port}" for node in sandbox.nodes}
    by_partition = {partition: servers[leader] for partition, leader in enumerate(leaders)}
    parts = [by_partition] if even else [{p: s for p, s in by_partition.items() if s == server} for server in servers.values()]
    for part in parts:
        yield FastSender(part, client_id, topic, size=_BATCH)


def measured_rates(sandbox: Sandbox, senders: list[FastSender]) -> Mapping[str, Mapping[int, float]]:
    """By client and broker, bytes a second of half a minute after the first windows, as the brokers log them."""
    begun = time.monotonic()
    with sending(senders):
        wait_until(lambda: time.monotonic() - begun > _WARM_UP_S + _SECONDS + 1)
    rates: dict[str, dict[int, float]] = {sender.name: {} for sender in senders}
    for node in sandbox.nodes:
        assert node.request_log_file is not None
        for (kind, _, client_id), requests in logged_requests(Path(node.request_log_file), node.id).items():
            if kind == "produce" and client_id in rates:
                first = min(request.ts_us for request in requests) + _WARM_UP_S * 1_000_000
                amounts = (request.amount for request in requests if first <= request.ts_us < first + _SECONDS * 1_000_000)
                rates[client_id][node.id] = sum(amounts) / _SECONDS
    return rates


def table(rates: Mapping[str, Mapping[int, float]]) -> str:
    """The figures for people: KiB/s on each broker, and all together in percent of the total."""
    rows = [
        f"{client}: {', '.join(f'{rate / 1024:.0f}' for _, rate in sorted(row.items()))} KiB/s, {sum(row.values()) / TOTAL:.0%}"
        for client, row in rates.items()
    ]
    return "\n".join(("", *rows))
