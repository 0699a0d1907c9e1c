"""A batch of the normal form as arrays: what each row is, and of which client, as ``normal_form.rows_of`` says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.columns.numbering import numbered
from reconciler.traffic.kernels.second_sums import Flags
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.normal_form import EVENT, NOT_AN_EVENT, UNKNOWN_IDENTITY
from reconciler.traffic.sources.row_status import END_US, FIRST_US, MOST_AMOUNT, UNREADABLE

NEEDED: Final = ("ts", "broker", "user", "client_id", "ip", "kind", "amount", "semantics")
"""The columns without which nothing can be said of a row; ``ip`` only when the file has it."""
_TICKS: Final = {"s": (1, 1_000_000), "ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}
"""How many ticks of a unit are how many microseconds."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The charged rows of a batch: ``of`` gives each its client, by place in the arrays of the four names.

    ``rows`` are the places in the batch, ``None`` for all. ``others`` counts the rows that are not charged, by status.
    """

    of: Integers
    ts_us: Integers
    amount: Integers
    broker: Integers
    kind: pa.Array
    user: pa.Array
    client_id: pa.Array
    rows: Integers | None
    others: Mapping[str, int]

    @property
    def clients(self) -> int:
        """How many distinct ones there are (a client can be there twice)."""
        return len(self.broker)


def chunk_of(batch: pa.RecordBatch) -> Chunk:
    """``batch`` has the columns ``NEEDED``, as ``Part.batches`` reads them."""
    kind, kinds = _names(batch, "kind")
    user, users = _names(batch, "user")
    client, clients = _names(batch, "client_id")
    of_address = _one_of(kind, kinds, {Kind.CONNECTION})
    if of_address.any():
        ip, addresses = _names(batch, "ip")
        user, users = np.where(of_address, len(users), user), pa.concat_arrays([users, pa.array([""])])
        client = np.where(of_address, np.where(ip < 0, -1, ip + len(clients)), client)
        clients = pa.concat_arrays([clients, addresses])
    ts_us, has_time = _times(batch)
    broker, has_broker = _brokers(batch)
    amount, has_amount = _numbers(batch, "amount")
    semantics, words = _names(batch, "semantics")
    usable = has_time & has_broker & has_amount & _one_of(kind, kinds, set(Kind)) & (amount >= 0) & (amount <= MOST_AMOUNT)
    failing = {
        UNREADABLE: ~usable,
        NOT_AN_EVENT: ~_one_of(semantics, words, {EVENT}),
        UNKNOWN_IDENTITY: of_address & (client < 0),
    }
    rows, others = _charged(failing)
    if rows is not None:
        kind, user, client, broker, ts_us, amount = (values[rows] for values in (kind, user, client, broker, ts_us, amount))
    # What is not known is a name of its own.
    pairs, pair = numbered((user + 1) * (len(clients) + 1) + client + 1, (len(users) + 1) * (len(clients) + 1))
    lowest = int(broker.min()) if len(broker) else 0
    brokers, number = numbered(broker - lowest, int(broker.max()) - lowest + 1 if len(broker) else 0)
    width = len(kinds) * len(brokers)
    found, of = numbered(pair * width + kind * len(brokers) + number, len(pairs) * width)
    of_pair, rest = (found // width, found % width) if width else (found, found)
    its_user, its_client = pairs[of_pair] // (len(clients) + 1) - 1, pairs[of_pair] % (len(clients) + 1) - 1
    return Chunk(
        of=of,
        ts_us=ts_us,
        amount=amount,
        broker=brokers[rest % len(brokers)] + lowest if width else rest,
        kind=kinds.take(pa.array(rest // len(brokers) if width else rest)),
        user=_taken(users, its_user),
        client_id=_taken(clients, its_client),
        rows=rows,
        others=others,
    )


def moments(batch: pa.RecordBatch) -> tuple[Integers, Integers]:
    """When and on which broker the rows were, of those that say it."""
    ts_us, has_time = _times(batch)
    broker, has_broker = _brokers(batch)
    mine = has_time & has_broker
    return ts_us[mine], broker[mine]


def optional(batch: pa.RecordBatch, name: str, rows: Integers | None) -> Integers:
    """A column of whole numbers or flags, 0 where it is null or missing, of the charged rows."""
    values, _ = _numbers(batch, name)
    return values if rows is None else values[rows]


def _charged(failing: Mapping[str, Flags]) -> tuple[Integers | None, dict[str, int]]:
    """The rows that nothing is wrong with (``None``: all); the others, each counted for the first thing wrong."""
    left: Flags | None = None
    others = {}
    for status, flags in failing.items():
        wrong = flags if left is None else flags & left
        count = int(np.count_nonzero(wrong))
        if count:
            others[status] = count
            left = ~wrong if left is None else left & ~wrong
    return (None if left is None else np.flatnonzero(left)), others


def _names(batch: pa.RecordBatch, name: str) -> tuple[Integers, pa.Array]:
    """A column of names: for each row the place of its name, -1 where it is null; and the names."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, -1, dtype=np.int64), pa.array([], type=pa.string())
    column = batch.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    places = pc.fill_null(column.indices, -1) if column.null_count else column.indices
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64), column.dictionary.cast(pa.string())


def _one_of(places: Integers, names: pa.Array, wanted: Collection[str]) -> Flags:
    # The last is for -1.
    return np.asarray([*(name in wanted for name in names.to_pylist()), False], dtype=np.bool_)[places]


def _numbers(batch: pa.RecordBatch, name: str) -> tuple[Integers, Flags]:
    """A column of whole numbers (moments in their own unit, flags as 0 and 1), 0 where null; and where it is not."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, dtype=np.int64), np.zeros(batch.num_rows, dtype=np.bool_)
    column = batch.column(name)
    whole = column.cast(pa.int64())
    there = np.ones(len(column), dtype=np.bool_)
    if whole.null_count:
        there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        whole = pc.fill_null(whole, 0)
    return np.asarray(whole.to_numpy(zero_copy_only=False), dtype=np.int64), there


def _times(batch: pa.RecordBatch) -> tuple[Integers, Flags]:
    """Microseconds since 1970, 0 where null or outside of the years that a row may be of; and where it is not."""
    column = batch.column("ts")
    ticks, there = _numbers(batch, "ts")
    finer, coarser = _TICKS[column.type.unit]
    # In its own unit, since 64 bits of microseconds do not hold every number of seconds.
    there &= (ticks >= FIRST_US * finer // coarser) & (ticks < END_US * finer // coarser)
    return np.where(there, ticks, 0) * coarser // finer, there


def _brokers(batch: pa.RecordBatch) -> tuple[Integers, Flags]:
    broker, there = _numbers(batch, "broker")
    there &= (broker >= -(2**31)) & (broker < 2**31)
    return np.where(there, broker, 0), there


def _taken(names: pa.Array, places: Integers) -> pa.Array:
    return names.take(pa.array(places, mask=places < 0))
