"""Per-second totals of a folder, one row at a time."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.traffic.request_traffic import TrafficSource
from reconciler.traffic.seconds.stored_rows import StoredRows
from reconciler.traffic.sources.normal_form import IDENTITY

Identity = tuple[int | str | None, ...]
"""Broker, kind, user, client-id and address."""


def stored_seconds(recorded: TrafficSource) -> Iterator[tuple[Identity, int, int]]:
    """Client, second and amount of each row of a folder of compact."""
    assert isinstance(recorded.rows, StoredRows)
    for file in recorded.rows.files:
        for batch in file.batches((*IDENTITY, "ts_us", "records"), None, None):
            for *client, ts_us, amount in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield tuple(client), ts_us // 1_000_000, amount
