"""How many partitions a topic had when it was extended or deleted, from all lines of a request log that show it.

CreatePartitions names the final number, and DeleteTopics none. Other lines do: CreateTopics and its answers, CreatePartitions,
and answers of Metadata and DescribeTopicPartitions. They may be in any file, of any broker. So rows carry what their lines show
of topics (``TOPICS``), all of it is put in the order of time, and then rows that lack a number get it.

A topic only grows: its number at a time is the largest one known of it so far. A topic id is of one topic, and a name may be used
again. In KRaft the same mutation is logged twice, so a second deletion costs what the first one did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.traffic.shuffle.rows import Totals
from reconciler.traffic.sources.normal_form import CHARGED, DUPLICATE, UNKNOWN_PARTITIONS

TOPICS: Final = "topics"
"""The column: what a line shows of topics, as ``topics_text`` has it; null in nearly all rows."""
SEEN, CREATED, EXTENDED, CHECKED, DELETED = "seen", "created", "extended", "checked", "deleted"
"""What is shown: a number at that time, or a mutation. ``CHECKED``: an extension that was only validated."""
_NO_IDS: Final = frozenset(("", "AAAAAAAAAAAAAAAAAAAAAA"))
"""All bits are 0."""
_MOST_KNOWN: Final = 200_000
_ORDER: Final = {what: rank for rank, what in enumerate((SEEN, CREATED, CHECKED, EXTENDED, DELETED))}


class TopicEvent(NamedTuple):
    """``partitions``: how many there are afterwards; ``None``: not shown. A name or an id may be unknown, too."""

    what: str
    name: str | None
    topic_id: str | None = None
    partitions: int | None = None


def topics_text(events: Sequence[TopicEvent]) -> str:
    """What one row shows."""
    return json.dumps(events, separators=(",", ":"))


def known_id(topic_id: str | None) -> str | None:
    """``None`` for the id of no topic, which old versions of requests have."""
    return None if topic_id is None or topic_id in _NO_IDS else topic_id


class SeenTopics:
    """What the answers of one file have shown so far: most repeat each other."""

    def __init__(self) -> None:
        self._known: dict[str | None, tuple[str | None, int | None]] = {}

    def new(self, events: Iterable[TopicEvent]) -> str | None:
        """Those that the answers before did not show, as ``topics_text`` has them."""
        fresh = [event for event in events if self._known.get(event.name) != (event.topic_id, event.partitions)]
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known |= {event.name: (event.topic_id, event.partitions) for event in fresh}
        return topics_text(fresh) if fresh else None


def _events_of(text: str) -> Iterator[TopicEvent]:
    return (TopicEvent(*event) for event in json.loads(text))


_EVENTS: Final = pa.schema([("ts_us", pa.int64()), (TOPICS, pa.string())])


def _shown(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        chosen = pc.and_(batch.column(TOPICS).is_valid(), pc.not_equal(batch.column("status"), DUPLICATE))
        yield batch.filter(chosen).select(_EVENTS.names).cast(_EVENTS)


TOPIC_EVENTS: Final[Totals[pa.RecordBatch]] = Totals(
    name="topics", columns=("status", *_EVENTS.names), count=_shown, schema=_EVENTS, keys=tuple(_EVENTS.names), folds={}
)
"""Each text with its time."""
Partitions = Mapping[tuple[int, str], int]
"""By time and text, the partitions of a mutation that its own line does not show."""


def count_partitions(shown: pa.Table) -> Partitions:
    """Of those mutations of which it is known. ``shown``: the rows of ``TOPIC_EVENTS``."""
    events = [
        (ts_us, event, text)
        for ts_us, text in zip(*(column.to_pylist() for column in shown.columns), strict=True)
        for event in _events_of(text)
    ]
    topics = _Topics({event.topic_id: event.name for _, event, _ in events if event.topic_id and event.name})
    events.sort(key=lambda shown: (shown[0], _ORDER[shown[1].what], shown[2]))
    return {key: count for ts_us, event, text in events for key, count in topics.add(event, (ts_us, text))}


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


def charge_known_topics(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The rows of all files of a history, copies marked: each mutation with what it costs, where some line shows that."""
    shown = pa.Table.from_batches(TOPIC_EVENTS.count(batches), schema=TOPIC_EVENTS.schema)
    return list(charge_topics(batches, count_partitions(shown)))


@dataclass(slots=True)
class _Topic:
    """One topic, from its creation to its deletion."""

    topic_id: str | None
    counts: set[int] = field(default_factory=set)
    is_deleted: bool = False
    created: list[tuple[int, str]] = field(default_factory=list)
    """Its creation, in one line or two, while no line has shown a number."""


class _Topics:
    """All topics, while their events come in the order of time. ``names``: of ids, as far as any line shows both."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._of_id: dict[str, _Topic] = {}
        self._of_name: dict[str, _Topic] = {}

    def add(self, event: TopicEvent, key: tuple[int, str]) -> Iterator[tuple[tuple[int, str], int]]:
        """The mutations whose partitions are known now."""
        name = event.name if event.name is not None else self._names.get(event.topic_id or "")
        if event.what == SEEN:
            yield from self._see(name, event)
        elif event.what == CREATED:
            topic = self._created(name, event.topic_id)
            if event.partitions is None:
                topic.created.append(key)
            else:
                topic.counts.add(event.partitions)
        elif event.what == DELETED:
            topic = self._deleted(name, event.topic_id)
            topic.is_deleted = True
            if topic.counts:
                yield key, max(topic.counts)
        elif event.partitions is not None:
            topic = self._of_name.get(name or "") or self._new(name, None)
            before = [count for count in topic.counts if count < event.partitions]
            if before:
                yield key, event.partitions - max(before)
            if event.what == EXTENDED:
                topic.counts.add(event.partitions)
                topic.created.clear()

    def _see(self, name: str | None, event: TopicEvent) -> Iterator[tuple[tuple[int, str], int]]:
        topic = self._seen(name, event.topic_id)
        if topic is not None and event.partitions is not None:
            topic.counts.add(event.partitions)
            yield from ((key, event.partitions) for key in topic.created)
            topic.created.clear()

    def _seen(self, name: str | None, topic_id: str | None) -> _Topic | None:
        """``None``: a topic of the past, of which a broker had not yet heard that it is gone."""
        known = self._of_name.get(name or "")
        if topic_id is None:
            topic = known or self._new(name, None)
            return None if topic.is_deleted else topic
        if topic_id in self._of_id:
            return self._of_id[topic_id]
        return self._identified(known, topic_id) or self._new(name, topic_id)

    def _created(self, name: str | None, topic_id: str | None) -> _Topic:
        if topic_id is not None and topic_id in self._of_id:
            return self._of_id[topic_id]
        known = self._of_name.get(name or "")
        if known is not None and not known.is_deleted and (topic_id is None or known.topic_id is None):
            # The other line of the same creation.
            return self._identified(known, topic_id) or known
        return self._new(name, topic_id)

    def _deleted(self, name: str | None, topic_id: str | None) -> _Topic:
        known = self._of_name.get(name or "")
        if topic_id is None:
            return known or self._new(name, None)
        return self._of_id.get(topic_id) or self._identified(known, topic_id) or self._new(name, topic_id)

    def _identified(self, topic: _Topic | None, topic_id: str | None) -> _Topic | None:
        """A topic that is known by its name alone, when a line shows its id."""
        if topic is None or topic.is_deleted or topic.topic_id is not None or topic_id is None:
            return None
        topic.topic_id = topic_id
        self._of_id[topic_id] = topic
        return topic

    def _new(self, name: str | None, topic_id: str | None) -> _Topic:
        topic = _Topic(topic_id)
        if name is not None:
            self._of_name[name] = topic
        if topic_id is not None:
            self._of_id[topic_id] = topic
        return topic
