"""The charges of one line of a request log: bytes, thread time and partitions, an entry for each.

**Bytes.** A log line has the sizes of record batches only. Produce is charged the request as received (header and body, without
the frame's length), fetch 4 bytes and the response body. Source: Kafka's message definitions ``ProduceRequest`` and
``FetchResponse`` with the wire encodings of each version; versions 0 to 13 and 0 to 18.

**Time.** Kafka charges a client for the time that its handler threads spend on a request, which the line gives as
``localTimeMs`` in whole microseconds, cut; and for the time of its network threads, which no line gives. Exempt are followers'
fetches, produce without acknowledgement, and requests between brokers and controllers: the calls of
``sendResponseExemptThrottle`` in ``KafkaApis`` and ``ControllerApis`` of 2.8.2, 3.9.2 and 4.3.1.

**Partitions** that a request creates or deletes are charged by the controller, topic by topic. CreateTopics gives the partitions
of each topic; ``-1`` is the broker's default, which answers from version 5 on give. CreatePartitions gives the final number, so
only one that assigns the new partitions shows how many they are. DeleteTopics never does. Those topics get
``UNKNOWN_PARTITIONS``, until other lines show their number (``log_evidence``).

A topic whose answer is an error was not charged, but for a timeout, which comes after the work. One that the quota refused
(error 89) counts as a topic of no partitions, and a fetch that was answered empty as one of no bytes: both were throttled.

A validation without creation is charged by a KRaft controller and free in ZooKeeper mode; it counts when the line shows KRaft: a
request passed on to the controller, or a broker of 4.0 or newer. In KRaft the same request is logged by the broker that took it
and by the controller that did it: see ``CONTROLLER``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.log_documents import (
    CONNECTION,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DECODERS,
    DELETE_TOPICS,
    FETCH,
    MUTATING,
    PRODUCE,
    REQUEST,
    SHARE_FETCH,
    AnsweredTopic,
    AskedTopic,
    FetchLine,
    LogLine,
    ProduceLine,
    TopicsAnswer,
    TopicsLine,
    TopicsRequest,
    decode_showing,
    decoded,
    produce_error_codes,
)
from reconciler.traffic.sources.log_evidence import CHECKED, CREATED, DELETED, EXTENDED, SEEN, TopicEvent, known_id, topics_text
from reconciler.traffic.sources.normal_form import CHARGED, EXEMPT, FOLLOWER, OTHER_API, REFUSED, UNKNOWN_PARTITIONS, UNSIZED

_PRODUCE_KIND: Final = Kind.PRODUCE.value
_FETCH_KIND: Final = Kind.FETCH.value
_REQUEST_KIND: Final = Kind.REQUEST.value
_MUTATION_KIND: Final = Kind.MUTATION.value
"""Each line needs one of them, and an enumeration takes long to give its values."""
_NAMES_KEPT: Final = 1 << 14
_MOST_SEEN: Final = 200_000
_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
_SINCE_4_0: Final = re.compile(r":\d+-\d+-\d+$")
"""Connections of brokers from 4.0 on end with port, processor and number."""
_BETWEEN_BROKERS: Final = frozenset((4, 5, 6, 7, 27, 52, 53, 54, 56, 59, 82))
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, WriteTxnMarkers, Vote, BeginQuorumEpoch, EndQuorumEpoch,
AlterPartition, FetchSnapshot, UpdateRaftVoter."""
_OF_THE_QUORUM: Final = frozenset((55, 80, 81))
"""DescribeQuorum, AddRaftVoter, RemoveRaftVoter: exempt on the controller, charged on the broker that passes them on."""
_NANOS: Final = 1_000
PRODUCE_FLEXIBLE_FROM: Final = 9
FETCH_FLEXIBLE_FROM: Final = 12
TOPIC_ID_FROM: Final = 13
"""The same number for both: the version whose topics are 16-byte ids."""
_SHOWING: Final = frozenset((3, 75))
"""Metadata and DescribeTopicPartitions."""
_STRICT_FROM: Final = {CREATE_TOPICS: 6, DELETE_TOPICS: 5, CREATE_PARTITIONS: 3}

REFUSED_MUTATION, FAILED_MUTATION, VALIDATE_ONLY = "refused-mutation", "failed-mutation", "validate-only"
_REQUEST_TIMED_OUT: Final = 7
_THROTTLING_QUOTA_EXCEEDED: Final = 89


class Entry(NamedTuple):
    """One thing that a line is charged for, or why it is not. ``records`` and ``overhead`` as in ``request_log.COLUMNS``."""

    status: str
    kind: str
    records: int = 0
    overhead: int = 0
    part: int | None = None
    begins_line: bool = True
    topics: str | None = None
    """What the line shows of topics, as ``topics_text`` has it."""
    refused: bool = False
    """A quota of then refused it: it cost nothing, and would have cost something under a higher limit."""


class LineReader:
    """Decodes documents and charges them; ``kinds``: what is wanted of them, of ``request_log.LOG_KINDS``."""

    def __init__(self, kinds: Collection[Kind]) -> None:
        self._only_bytes = not set(kinds) - set(BYTES)
        self._time = Kind.REQUEST in kinds
        self._topics = Kind.MUTATION in kinds
        self._seen: dict[str | None, TopicEvent] = {}
        charged = frozenset((PRODUCE, FETCH, SHARE_FETCH, None))
        self.wanted = None if self._time else charged | MUTATING if self._topics else charged
        """The kinds of requests whose lines are charged for anything; an unknown kind may be. ``None``: all."""
        self.showing = _SHOWING if self._topics else frozenset()
        """The kinds of requests whose answers show how many partitions topics have."""

    def shown_topics(self, document: bytes) -> str | None:
        """Return what an answer of ``showing`` shows anew of topics, as ``topics_text`` has it. ``None``: nothing."""
        line = decode_showing(document)
        if line is None or line.response is None:
            return None
        cursors = (line.request.cursor if line.request is not None else None, line.response.next_cursor)
        cut = {cursor.topic_name for cursor in cursors if cursor is not None}
        events = (
            TopicEvent(SEEN, topic.name, known_id(topic.topic_id), len(topic.partitions))
            for topic in line.response.topics or ()
            if not topic.error_code and topic.partitions and topic.name not in cut
        )
        # Most answers repeat those before.
        fresh = [event for event in events if self._seen.get(event.name) != event]
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        self._seen |= {event.name: event for event in fresh}
        return topics_text(fresh) if fresh else None

    def decode(self, api: int | None, document: bytes) -> LogLine | None:
        """Decode a document. ``None``: it lacks a needed field."""
        if api is None:
            return None
        decoder = DECODERS.get(api) if api in (PRODUCE, FETCH) or self._topics else None
        if decoder is None:
            decoder = DECODERS[None]
            begin, end = document.find(REQUEST), document.rfind(CONNECTION)
            # Otherwise a field is missing, or they come in an order that is not the broker's.
            document = document[:begin] + document[end:] if 0 < begin < end else document
        line: LogLine | None = decoded(decoder, document)
        needs_time = self._time or (api not in (PRODUCE, FETCH) and not self._only_bytes)
        return None if line is None or (needs_time and line.local_time_ms is None) else line

    def unusable(self, api: int | None, status: str) -> Entry:
        """The one entry of a line that nothing can be taken from."""
        if api == PRODUCE:
            return Entry(status, _PRODUCE_KIND)
        of_bytes = api in (FETCH, SHARE_FETCH, None) or not self._time
        return Entry(status, _FETCH_KIND if of_bytes else _REQUEST_KIND)

    def entries(self, api: int, line: LogLine) -> list[Entry]:
        """All entries of a line that is wanted, at least one."""
        if isinstance(line, ProduceLine):
            entry, is_free = _produce_entry(line), line.request.acks == 0
        elif isinstance(line, FetchLine):
            entry = _fetch_entry(line)
            is_free = entry.status == FOLLOWER
        elif api == SHARE_FETCH:
            entry, is_free = Entry(UNSIZED, _FETCH_KIND), False
        else:
            return self._entries_without_bytes(api, line)
        if is_free or not self._time:
            return [entry]
        return [entry, Entry(CHARGED, _REQUEST_KIND, _thread_nanos(line), begins_line=False)]

    def _entries_without_bytes(self, api: int, line: LogLine) -> list[Entry]:
        entries = []
        if self._time:
            exempt = api in _BETWEEN_BROKERS or (api in _OF_THE_QUORUM and bool(line.is_forwarded))
            entries.append(Entry(EXEMPT if exempt else CHARGED, _REQUEST_KIND, _thread_nanos(line)))
        if isinstance(line, TopicsLine):
            entries += _topic_entries(api, line, begins=not entries)
        return entries or [Entry(OTHER_API, _MUTATION_KIND)]


def _thread_nanos(line: LogLine) -> int:
    """A lower bound."""
    return int((line.local_time_ms or 0.0) * 1000 + 0.5) * _NANOS


def _produce_entry(line: ProduceLine) -> Entry:
    request = line.request
    status = CHARGED
    if request.transactional_id is not None:
        codes = produce_error_codes(line)
        if codes and all(code == _TRANSACTIONAL_ID_AUTHORIZATION_FAILED for code in codes):
            status = REFUSED
    version = line.request_header.request_api_version
    flexible = version >= PRODUCE_FLEXIBLE_FROM
    records, size = 0, 16 + _utf8_length(line.request_header.client_id)
    if flexible:
        size += 2 + _uvarint(len(request.topic_data) + 1) + _compact_string(request.transactional_id)
    else:
        size += 4 + (2 + _utf8_length(request.transactional_id) if version >= 3 else 0)
    for topic in request.topic_data:
        partitions = topic.partition_data or ()
        size += _topic_name(topic.name, version, flexible=flexible)
        size += _uvarint(len(partitions) + 1) + 1 if flexible else 4 + 8 * len(partitions)
        for partition in partitions:
            sent = partition.records_size_in_bytes or 0
            records += sent
            if flexible:
                size += _uvarint(sent + 1) + 5
    return Entry(status, _PRODUCE_KIND, records, size)


def _fetch_entry(line: FetchLine) -> Entry:
    request, answer, version = line.request, line.response, line.request_header.request_api_version
    state = None if request is None else request.replica_state
    replica = None if request is None else request.replica_id
    if replica is None and state is not None:
        replica = state.replica_id
    if replica is not None and replica >= 0:
        status = FOLLOWER
    elif not answer.responses and (line.throttle_time_ms or 0) > 0:
        # A broker takes back what a throttled fetch was counted for.
        return Entry(CHARGED, _FETCH_KIND)
    else:
        status = CHARGED
    flexible = version >= FETCH_FLEXIBLE_FROM
    records, size = 0, 4 + (4 if version >= 1 else 0) + (6 if version >= 7 else 0)
    size += 1 + _uvarint(len(answer.responses) + 1) if flexible else 4
    fixed = 18 + (8 if version >= 4 else 0) + (8 if version >= 5 else 0) + (4 if version >= 11 else 0)
    for topic in answer.responses:
        partitions = topic.partitions or topic.partition_responses or ()
        size += _topic_name(topic.topic, version, flexible=flexible)
        size += _uvarint(len(partitions) + 1) + 1 if flexible else 4
        for partition in partitions:
            sent, aborted = (
                partition.records_size_in_bytes or partition.record_set_size_in_bytes or 0,
                partition.aborted_transactions,
            )
            records += sent
            if flexible:
                size += 35 + _uvarint(sent + 1) + (1 if aborted is None else _uvarint(len(aborted) + 1) + 17 * len(aborted))
                # Tagged fields: tag, length, content (int32 and int64, twice int32, int64 and int32) and its own tags.
                size += 15 if partition.diverging_epoch is not None else 0
                size += 11 if partition.current_leader is not None else 0
                size += 15 if partition.snapshot_id is not None else 0
            else:
                size += fixed + (4 + 16 * len(aborted or ()) if version >= 4 else 0)
    return Entry(status, _FETCH_KIND, records, size)


def _topic_entries(api: int, line: TopicsLine, *, begins: bool) -> Iterator[Entry]:
    """Yield the entry of each topic, in the order of the request."""
    kraft = bool(line.is_forwarded) or _SINCE_4_0.search(line.connection) is not None
    request, answer = line.request or TopicsRequest(), line.response or TopicsAnswer()
    only = bool(request.validate_only)
    named: dict[tuple[str | None, str | None], AnsweredTopic] = {}
    for answered in answer.topics or answer.results or answer.responses or ():
        named.setdefault((answered.name, None), answered)
        named.setdefault((None, answered.topic_id), answered)
    for part, topic in enumerate(request.topics or [AskedTopic(name=name) for name in request.topic_names or ()]):
        its = named.get((topic.name, None) if topic.name is not None else (None, topic.topic_id))
        partitions = _partitions(api, topic, its)
        status = _status(its.error_code if its else None, partitions, free=only and not kraft)
        event = _event(api, topic, its, partitions, only=only) if status in (CHARGED, UNKNOWN_PARTITIONS) else None
        refused = status == REFUSED_MUTATION
        yield Entry(
            CHARGED if refused else status,
            _MUTATION_KIND,
            0 if refused else partitions or 0,
            part=part,
            begins_line=begins and part == 0,
            topics=None if event is None else topics_text([event]),
            refused=refused,
        )


def _topic_name(name: str | None, version: int, *, flexible: bool) -> int:
    if version >= TOPIC_ID_FROM:
        return 16
    return _compact_string(name) if flexible else 2 + _utf8_length(name)


@functools.lru_cache(maxsize=_NAMES_KEPT)
def _compact_string(text: str | None) -> int:
    if text is None:
        return 1
    length = _utf8_length(text)
    return _uvarint(length + 1) + length


@functools.lru_cache(maxsize=_NAMES_KEPT)
def _utf8_length(text: str | None) -> int:
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _uvarint(value: int) -> int:
    """Bytes of an unsigned varint of a 32-bit value."""
    return 1 if value < 1 << 7 else (value.bit_length() + 6) // 7


def _event(api: int, topic: AskedTopic, answer: AnsweredTopic | None, partitions: int | None, *, only: bool) -> TopicEvent | None:
    """Return what a line shows of a topic. ``only``: it was validated, and not done."""
    name = topic.name if topic.name is not None else answer.name if answer else None
    topic_id = known_id(topic.topic_id) or known_id(answer.topic_id if answer else None)
    if api == CREATE_PARTITIONS:
        return TopicEvent(CHECKED if only else EXTENDED, name, topic_id, _positive(topic.count))
    if only:
        return None
    return TopicEvent(CREATED, name, topic_id, partitions) if api == CREATE_TOPICS else TopicEvent(DELETED, name, topic_id)


def _status(code: int | None, partitions: int | None, *, free: bool) -> str:
    if code == _THROTTLING_QUOTA_EXCEEDED:
        return REFUSED_MUTATION
    if code not in (None, 0, _REQUEST_TIMED_OUT):
        return FAILED_MUTATION
    if free:
        return VALIDATE_ONLY
    return UNKNOWN_PARTITIONS if partitions is None else CHARGED


def is_strict(api: int, version: int) -> bool:
    """Whether the controller refuses topics of this version of the request when the quota is used up."""
    return version >= _STRICT_FROM[api]


def _partitions(api: int, topic: AskedTopic, answer: AnsweredTopic | None) -> int | None:
    if topic.assignments:
        return len(topic.assignments)
    if api != CREATE_TOPICS:
        return None
    return _positive(topic.num_partitions) or _positive(answer.num_partitions if answer else None)


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None
