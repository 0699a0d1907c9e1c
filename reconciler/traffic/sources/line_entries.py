"""What one line of a request log is charged for: an entry for each thing, a row's own part, where the rest is the line's.

Kafka charges a client for the time that its handler threads spend on a request, which the line gives as ``localTimeMs`` in whole
microseconds, cut; and for the time of its network threads, which no line gives. Exempt are followers' fetches, produce without
acknowledgement, and requests between brokers and controllers: the calls of ``sendResponseExemptThrottle`` in ``KafkaApis`` and
``ControllerApis`` of 2.8.2, 3.9.2 and 4.3.1.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.charged_size import fetch_overhead, fetch_records, produce_overhead, produce_records
from reconciler.traffic.sources.log_documents import (
    FETCH,
    PRODUCE,
    SHARE_FETCH,
    FetchLine,
    Line,
    ProduceLine,
    TopicsLine,
    decode_any,
    decode_fetch,
    decode_produce,
    decode_topics,
    produce_error_codes,
)
from reconciler.traffic.sources.mutations import MUTATING, mutations
from reconciler.traffic.sources.statuses import (
    CHARGED,
    EMPTY_THROTTLED,
    EXEMPT,
    FOLLOWER,
    OTHER_API,
    REFUSED,
    UNSIZED,
)

_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
_SINCE_4_0: Final = re.compile(r":\d+-\d+-\d+$")
"""Connections of brokers from 4.0 on end with port, processor and number."""
_BETWEEN_BROKERS: Final = frozenset((4, 5, 6, 7, 27, 52, 53, 54, 56, 59, 82))
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, WriteTxnMarkers, Vote, BeginQuorumEpoch, EndQuorumEpoch,
AlterPartition, FetchSnapshot, UpdateRaftVoter."""
_OF_THE_QUORUM: Final = frozenset((55, 80, 81))
"""DescribeQuorum, AddRaftVoter, RemoveRaftVoter: exempt on the controller, charged on the broker that passes them on."""
_NANOS: Final = 1_000


class Entry(NamedTuple):
    """One thing that a line is charged for, or why it is not. ``records`` and ``overhead`` as in ``request_log.COLUMNS``."""

    status: str
    kind: str
    records: int = 0
    overhead: int = 0
    part: int | None = None
    begins_line: bool = True


class LineReader:
    """Decodes documents and charges them; ``kinds``: what is wanted of them, of ``request_log.LOG_KINDS``."""

    def __init__(self, kinds: Collection[Kind]) -> None:
        self._only_bytes = not set(kinds) - set(BYTES)
        self._time = Kind.REQUEST in kinds
        self._topics = Kind.MUTATION in kinds

    def wants(self, api: int | None) -> bool:
        """Whether lines of this kind of request are charged for anything; of an unknown kind nobody knows."""
        return self._time or api in (PRODUCE, FETCH, SHARE_FETCH, None) or (self._topics and api in MUTATING)

    def decode(self, api: int | None, document: bytes) -> Line | None:
        """``None`` for a document that lacks a needed field."""
        if api is None:
            return None
        if api == PRODUCE:
            line: Line | None = decode_produce(document)
        elif api == FETCH:
            line = decode_fetch(document)
        elif self._topics and api in MUTATING:
            line = decode_topics(document)
        else:
            line = decode_any(document)
        needs_time = self._time or (api not in (PRODUCE, FETCH) and not self._only_bytes)
        return None if line is None or (needs_time and line.local_time_ms is None) else line

    def unusable(self, api: int | None, status: str) -> Entry:
        """The one entry of a line that nothing can be taken from."""
        if api == PRODUCE:
            return Entry(status, Kind.PRODUCE.value)
        of_bytes = api in (FETCH, SHARE_FETCH, None) or not self._time
        return Entry(status, Kind.FETCH.value if of_bytes else Kind.REQUEST.value)

    def entries(self, api: int, line: Line) -> list[Entry]:
        """All entries of a line that is wanted, at least one."""
        if isinstance(line, ProduceLine):
            return self._with_time(_produce_entry(line), line, free=line.request.acks == 0)
        if isinstance(line, FetchLine):
            entry = _fetch_entry(line)
            return self._with_time(entry, line, free=entry.status == FOLLOWER)
        if api == SHARE_FETCH:
            return self._with_time(Entry(UNSIZED, Kind.FETCH.value), line, free=False)
        found = [self._alone(api, line)] if self._time else []
        if isinstance(line, TopicsLine):
            found += _topic_entries(api, line, begins=not found)
        return found or [Entry(OTHER_API, Kind.MUTATION.value)]

    def _with_time(self, entry: Entry, line: Line, *, free: bool) -> list[Entry]:
        if free or not self._time:
            return [entry]
        return [entry, Entry(CHARGED, Kind.REQUEST.value, _thread_nanos(line), begins_line=False)]

    def _alone(self, api: int, line: Line) -> Entry:
        exempt = api in _BETWEEN_BROKERS or (api in _OF_THE_QUORUM and bool(line.is_forwarded))
        return Entry(EXEMPT if exempt else CHARGED, Kind.REQUEST.value, _thread_nanos(line))


def _thread_nanos(line: Line) -> int:
    """A lower bound."""
    return int((line.local_time_ms or 0.0) * 1000 + 0.5) * _NANOS


def _produce_entry(line: ProduceLine) -> Entry:
    request, header = line.request, line.request_header
    status = CHARGED
    if request.transactional_id is not None:
        codes = produce_error_codes(line)
        if codes and all(code == _TRANSACTIONAL_ID_AUTHORIZATION_FAILED for code in codes):
            status = REFUSED
    overhead = produce_overhead(header.request_api_version, header.client_id or "", request)
    return Entry(status, Kind.PRODUCE.value, produce_records(request), overhead)


def _fetch_entry(line: FetchLine) -> Entry:
    status = CHARGED
    if _replica(line) >= 0:
        status = FOLLOWER
    elif not line.response.responses and (line.throttle_time_ms or 0) > 0:
        status = EMPTY_THROTTLED
    overhead = fetch_overhead(line.request_header.request_api_version, line.response)
    return Entry(status, Kind.FETCH.value, fetch_records(line.response), overhead)


def _replica(line: FetchLine) -> int:
    request = line.request
    if request is None:
        return -1
    if request.replica_id is not None:
        return request.replica_id
    state = request.replica_state
    return -1 if state is None or state.replica_id is None else state.replica_id


def _topic_entries(api: int, line: TopicsLine, *, begins: bool) -> list[Entry]:
    kraft = bool(line.is_forwarded) or _SINCE_4_0.search(line.connection) is not None
    return [
        Entry(status, Kind.MUTATION.value, partitions, 0, part, begins_line=begins and part == 0)
        for part, (status, partitions) in enumerate(mutations(api, line.request, line.response, kraft=kraft))
    ]
