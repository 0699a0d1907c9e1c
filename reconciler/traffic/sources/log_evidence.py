"""Evidence about the recording from request logs: the cluster's id, its brokers, and duplicate lines.

A line is a copy of another one when the connection, the correlation id and the time are the same: copied logs, logs cut by
rotation, one log under two names. The line that counts is that of the smallest broker, then of the first file.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.model import escaped
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.shuffle.rows import Totals
from reconciler.traffic.sources.normal_form import CHARGED, DUPLICATE, UNKNOWN_PARTITIONS

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


def names_of_cluster(api: int, raw: bytes) -> tuple[str | None, str | None]:
    """Return the cluster's id that a line of ``NAMING`` has, and the brokers that its answer lists; ``None`` for none."""
    begin = raw.rfind(_FIELD)
    end = raw.find(b'"', begin + len(_FIELD))
    cluster = raw[begin + len(_FIELD) : end].decode("utf-8", "replace") if 0 <= begin < end else None
    begin = raw.rfind(_BROKERS) if api in _LISTING else -1
    if begin < 0:
        return cluster, None
    try:
        listed, _ = _decoder.raw_decode(raw[begin + len(_BROKERS) - 1 :].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return cluster, None
    ids = (node.get("nodeId", node.get("brokerId")) for node in listed if isinstance(node, dict))
    numbers = sorted({number for number in ids if isinstance(number, int)})
    return cluster, ",".join(map(str, numbers)) or None


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


TOPICS: Final = "topics"
"""The column: what a line shows of topics, as ``topics_text`` has it; null in nearly all rows."""
SEEN, CREATED, EXTENDED, CHECKED, DELETED = "seen", "created", "extended", "checked", "deleted"
"""What is shown: a number at that time, or a mutation. ``CHECKED``: an extension that was only validated."""
_NO_IDS: Final = frozenset(("", "AAAAAAAAAAAAAAAAAAAAAA"))
"""All bits are 0."""
_ORDER: Final = {what: rank for rank, what in enumerate((SEEN, CREATED, CHECKED, EXTENDED, DELETED))}


class TopicEvent(NamedTuple):
    """``partitions``: how many there are afterwards; ``None``: not shown. A name or an id may be unknown, too."""

    what: str
    name: str | None
    topic_id: str | None = None
    partitions: int | None = None


def topics_text(events: Sequence[TopicEvent]) -> str:
    """Write what one row shows as text."""
    return json.dumps(events, separators=(",", ":"))


def known_id(topic_id: str | None) -> str | None:
    """Return the id; ``None`` for the id of no topic, which old versions of requests have."""
    return None if topic_id is None or topic_id in _NO_IDS else topic_id


_EVENTS: Final = pa.schema([("ts_us", pa.int64()), (TOPICS, pa.string())])


def _shown(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        chosen = pc.and_(batch.column(TOPICS).is_valid(), pc.not_equal(batch.column("status"), DUPLICATE))
        yield batch.filter(chosen).select(_EVENTS.names).cast(_EVENTS)


TOPIC_EVENTS: Final[Totals[pa.RecordBatch]] = Totals(
    name="topics", columns=("status", *_EVENTS.names), count=_shown, schema=_EVENTS, keys=tuple(_EVENTS.names), folds={}
)
"""Each text with its time."""
NO_TOPICS: Final[Mapping[str, int]] = MappingProxyType({})
Partitions = Mapping[tuple[int, str], int]
"""By time and text, the partitions of a mutation that its own line does not show."""


@dataclass(slots=True)
class _Topic:
    """One topic, from its creation to its deletion."""

    topic_id: str | None = None
    counts: set[int] = field(default_factory=set)
    is_deleted: bool = False
    created: list[tuple[int, str]] = field(default_factory=list)
    """Its creation, in one line or two, while no line has shown a number."""


def count_partitions(shown: pa.Table, known: Mapping[str, int] = NO_TOPICS) -> Partitions:
    """Count the partitions of mutations of which they are known. ``shown``: the rows of ``TOPIC_EVENTS``.

    ``known``: by name the partitions of topics of which no line shows them, as a snapshot or the cluster has them.
    """
    rows = zip(*(column.to_pylist() for column in shown.columns), strict=True)
    events = [(ts_us, TopicEvent(*event), text) for ts_us, text in rows for event in json.loads(text)]
    events.sort(key=lambda shown: (shown[0], _ORDER[shown[1].what], shown[2]))
    names = {event.topic_id: event.name for _, event, _ in events if event.topic_id and event.name}
    of_id: dict[str, _Topic] = {}
    of_name: dict[str | None, _Topic] = {}
    partitions: dict[tuple[int, str], int] = {}
    for ts_us, event, text in events:
        name = event.name if event.name is not None else names.get(event.topic_id or "")
        topic, count = _topic_of(event, name, of_id, of_name), event.partitions
        counts = topic.counts or ({known[name]} if name is not None and name in known else set())
        if event.what == DELETED:
            topic.is_deleted = True
            if counts:
                partitions[ts_us, text] = max(counts)
        elif count is None:
            topic.created += [(ts_us, text)] if event.what == CREATED else []
        elif event.what in (EXTENDED, CHECKED):
            if before := [smaller for smaller in counts if smaller < count]:
                partitions[ts_us, text] = count - max(before)
            if event.what == EXTENDED:
                topic.counts.add(count)
                topic.created.clear()
        elif event.what == CREATED:
            topic.counts.add(count)
        elif event.topic_id is not None or not topic.is_deleted:
            # Otherwise it is of the past, and a broker had not yet heard that it is gone.
            topic.counts.add(count)
            partitions |= dict.fromkeys(topic.created, count)
            topic.created.clear()
    return partitions


def _topic_of(event: TopicEvent, name: str | None, of_id: dict[str, _Topic], of_name: dict[str | None, _Topic]) -> _Topic:
    """The topic that an event is of: by its id, else the last one of its name, which has this id then."""
    if event.topic_id in of_id:
        return of_id[event.topic_id]
    topic = of_name.get(name) or _Topic()
    # Another line of the same creation finds the topic as it is.
    if (event.what == CREATED and topic.is_deleted) or (event.topic_id and (topic.is_deleted or topic.topic_id)):
        topic = _Topic()
    if name is not None:
        of_name[name] = topic
    if event.topic_id is not None:
        topic.topic_id = event.topic_id
        of_id[event.topic_id] = topic
    return topic


def charge_topics(batches: Iterable[pa.RecordBatch], partitions: Partitions) -> Iterator[pa.RecordBatch]:
    """The same rows, those of mutations with what they cost. ``batches``: with all columns of ``request_log.schema``."""
    return (_charged(batch, partitions) for batch in batches)


def _charged(batch: pa.RecordBatch, partitions: Partitions) -> pa.RecordBatch:
    unknown = np.flatnonzero(pc.equal(batch.column("status"), UNKNOWN_PARTITIONS).to_numpy(zero_copy_only=False))
    if not len(unknown):
        return batch
    keys = zip(*(batch.column(name).take(pa.array(unknown)).to_pylist() for name in ("ts_us", TOPICS)), strict=True)
    known = {place: partitions[key] for place, key in zip(unknown.tolist(), keys, strict=True) if key in partitions}
    for name, values in (("status", dict.fromkeys(known, CHARGED)), ("records", known)):
        column = batch.column(name)
        changed = pa.array([values.get(place, value) for place, value in enumerate(column.to_pylist())], column.type)
        batch = batch.set_column(batch.schema.get_field_index(name), name, changed)
    return batch


def charge_known_topics(batches: Sequence[pa.RecordBatch], known: Mapping[str, int] = NO_TOPICS) -> list[pa.RecordBatch]:
    """The rows of all files of a history, copies marked: each mutation with what it costs, where some line shows that."""
    shown = pa.Table.from_batches(TOPIC_EVENTS.count(batches), schema=TOPIC_EVENTS.schema)
    return list(charge_topics(batches, count_partitions(shown, known))) if shown.num_rows else list(batches)
