"""Evidence about the recording from request logs: the cluster's id, its brokers, and duplicate lines.

A line is a copy of another one when the connection, the correlation id and the time are the same: copied logs, logs cut by
rotation, one log under two names. The line that counts is that of the smallest broker, then of the first file.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.model import escaped
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.rows import Totals
from reconciler.traffic.sources.normal_form import DUPLICATE

CLUSTER: Final = "cluster"
"""The column of cluster ids: present on the few lines that name one."""
NAMING: Final = frozenset((3, 60, 62))
"""Metadata, DescribeCluster, BrokerRegistration: requests whose lines name the cluster, and the first two its brokers."""
NAMED_BROKERS: Final = "named_brokers"
"""The column: ids with commas between them, rising, on lines whose answer lists the brokers of the cluster."""
_LISTING: Final = frozenset((3, 60))
_BROKERS: Final = b'"brokers":['
_decoder: Final = json.JSONDecoder()
_FIELD: Final = b'"clusterId":"'
COPY_OF: Final = "copy_of"
"""The column that rows with a ``file`` get: the file whose line counts, on the rows of copies."""
LINE_KEYS: Final = pa.schema([("tie", pa.int64()), ("ts_us", pa.int64())])
_REQUEST: Final = ("tie", "ts_us", "kind", "part")


def cluster_id(api: int | None, raw: bytes) -> str | None:
    """The id that a line names, else ``None``."""
    if api not in NAMING:
        return None
    begin = raw.rfind(_FIELD)
    end = raw.find(b'"', begin + len(_FIELD))
    return raw[begin + len(_FIELD) : end].decode("utf-8", "replace") if 0 <= begin < end else None


def named_brokers(api: int | None, raw: bytes) -> str | None:
    """The brokers that a line's answer lists, else ``None``."""
    if api not in _LISTING:
        return None
    begin = raw.rfind(_BROKERS)
    try:
        listed, _ = _decoder.raw_decode(raw[begin + len(_BROKERS) - 1 :].decode("utf-8", "replace")) if begin >= 0 else ([], 0)
    except (ValueError, RecursionError):
        return None
    ids = (node.get("nodeId", node.get("brokerId")) for node in listed if isinstance(node, dict))
    numbers = sorted({number for number in ids if isinstance(number, int)})
    return ",".join(map(str, numbers)) or None


def require_one(clusters: Mapping[str, str]) -> None:
    """Raise ``TrafficError`` for more than one cluster's id; each with what is of it."""
    if len(clusters) < 2:
        return
    names = ", ".join(f"{escaped(name)} ({whose})" for name, whose in sorted(clusters.items()))
    raise TrafficError(f"recorded traffic is of {len(clusters)} clusters, {names}: give --traffic of one cluster at a time")


_LINES: Final = pa.schema([("broker", pa.int32()), ("own", pa.int64()), ("copies", pa.int64())])


def _count_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        timed = batch.filter(pc.and_(batch.column("ts_us").is_valid(), pc.greater_equal(batch.column("broker"), 0)))
        copies = pc.equal(timed.column("status").cast(pa.string()), DUPLICATE).cast(pa.int64())
        yield pa.RecordBatch.from_arrays([timed.column("broker"), pc.subtract(1, copies), copies], schema=_LINES)


LINES_OF_BROKERS: Final[Totals[pa.RecordBatch]] = Totals(
    name="lines of brokers",
    columns=("status", "broker", "ts_us"),
    count=_count_lines,
    schema=_LINES,
    keys=("broker",),
    folds={"own": "sum", "copies": "sum"},
)


def require_own_lines(lines: pa.Table) -> None:
    """Raise ``TrafficError`` for a broker all of whose lines are in the log of another one. ``lines``: ``LINES_OF_BROKERS``."""
    copied = sorted(row["broker"] for row in lines.to_pylist() if not row["own"])
    if copied:
        raise TrafficError(
            f"recorded traffic: every line that is given for broker {copied[0]} is also given for another broker, so one of them "
            "has the log of the other. Give each broker its own log: --traffic ID=PATH"
        )


def line_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    """``LINE_KEYS`` of the lines that have a time, one row a line: nearly every log is without copies, and this shows it."""
    return batch.filter(pc.and_(batch.column("ts_us").is_valid(), batch.column("begins_line"))).select(LINE_KEYS.names)


def mark_copies(rows: pa.Table) -> pa.Table:
    """Rows of ``request_log.schema``; copies get the status ``DUPLICATE``, and ``COPY_OF`` where files are known."""
    timed = np.flatnonzero(rows.column("ts_us").is_valid().to_numpy())
    some = rows.take(pa.array(timed))
    files = ("file",) if "file" in rows.schema.names else ()
    request = [_codes(some.column(name)) for name in _REQUEST]
    preference = [_codes(some.column(name)) for name in ("broker", *files)]
    order = np.lexsort((*reversed(preference), *reversed(request)))
    again = np.logical_and.reduce([np.diff(key[order], prepend=key[order][:1] - 1) == 0 for key in request])
    if not again.any():
        return rows
    first = np.maximum.accumulate(np.where(again, 0, np.arange(len(again))))
    original = np.full(rows.num_rows, -1, dtype=np.int64)
    original[timed[order[again]]] = timed[order[first[again]]]
    places = pa.array(original, mask=original < 0)
    status = pc.if_else(places.is_valid(), DUPLICATE, rows.column("status"))
    marked = rows.set_column(rows.schema.get_field_index("status"), "status", status)
    for name in files:
        marked = marked.append_column(COPY_OF, rows.column(name).take(places))
    return marked.combine_chunks()


def _codes(column: pa.ChunkedArray) -> Integers:
    """Numbers in the order of the values: of numbers themselves, of texts their rank; -1 for null."""
    if pa.types.is_integer(column.type):
        return np.asarray(pc.fill_null(column, -1).to_numpy(), dtype=np.int64)
    encoded = pc.dictionary_encode(column).combine_chunks()
    names = np.asarray(encoded.dictionary.to_pylist(), dtype=np.object_)
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[np.argsort(names)] = np.arange(len(names))
    rank[-1] = -1
    return rank[np.asarray(pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False), dtype=np.int64)]


REQUEST_NUMBER: Final = "request_number"
"""The column: in the high 32 bits a hash of the client, in the low ones its correlation id; null where a line was not decoded."""
FEWEST_STEPS: Final = 100
"""Fewer pairs of consecutive requests prove nothing."""
WHOLE_STEP: Final = 2.0
"""A log whose usual step is larger lacks more than half of its lines."""
_LOW: Final = (1 << 32) - 1
_CLIENTS_KEPT: Final = 100_000


def request_numbers(
    connections: Sequence[str | None], client_ids: Sequence[str | None], correlation_ids: Sequence[int | None]
) -> pa.Array:
    """``REQUEST_NUMBER`` of requests; a line that was not decoded has no connection."""
    clients = np.array([*map(_client_hash, connections, client_ids)], dtype=np.int64)
    numbers = pa.array(correlation_ids, pa.int32())
    low = pc.fill_null(numbers, 0).cast(pa.int64()).to_numpy() & _LOW
    return pa.array(clients << 32 | low, mask=~numbers.is_valid().to_numpy(zero_copy_only=False))


@functools.lru_cache(maxsize=_CLIENTS_KEPT)
def _client_hash(connection: str | None, client_id: str | None) -> int:
    """``connection``: as Kafka logs it, ``LOCAL:PORT-REMOTE:PORT-...``; the remote port does not identify the client."""
    if connection is None:
        return 0
    address = connection.split("-", 2)[1].rpartition(":")[0] if connection.count("-") else connection
    digest = hashlib.blake2b(f"{address}\0{client_id}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little", signed=True)


def usual_step(numbers: Integers) -> float | None:
    """The median distance between consecutive correlation ids of one client; ``None``: too few requests.

    ``numbers``: values of ``REQUEST_NUMBER``, shape (n,), in any order and some of them several times. Of a whole log it is 1;
    of a random sample of the lines it is near 1 divided by the sampled share.
    """
    distinct = np.unique(numbers)
    steps = np.diff(distinct)[np.diff(distinct >> 32) == 0]
    return float(np.median(steps)) if len(steps) >= FEWEST_STEPS else None
