"""The JSON document of a request log line, decoded as far as its kind of request is needed.

Decoding is the largest cost, and most of a document is never used. So each kind of request has a type of its own, and the
decoder skips every other field. Of requests of which only the time counts, whose answers can be long, request and answer are cut
off before. An unescaped quote cannot be part of a name, so a text such as ``,"request":`` is always the document's own.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
import zoneinfo
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from reconciler.errors import UsageError

Decoded = TypeVar("Decoded")

MARKER: Final = b"Completed request:"
PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
CREATE_PARTITIONS: Final = 37
"""API keys."""
MUTATING: Final = frozenset((CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS))

_API_KEY: Final = b'"requestApiKey":'
REQUEST, CONNECTION = b',"request":', b',"connection":'
"""Between them are request and answer."""
_THROTTLE: Final = b'"throttleTimeMs":'
_LONGEST_THROTTLE_MS: Final = 2**31 - 1
_LONGEST_KEY: Final = 8
_LONGEST_NUMBER: Final = 12
_BEGINNINGS_KEPT: Final = 1 << 10
_KEY: Final = re.compile(rb"\s*([0-9]+)")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""Bytes of one record set: a broker counts them in 32 bits."""
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=3_600_000)]
"""At most an hour: no request takes longer, and a longer time is damaged."""


class _Decoded(msgspec.Struct, rename="camel", gc=False):
    """A part of a document; fields that are not named are skipped."""


class Header(_Decoded):
    """The request's header."""

    request_api_version: Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
    correlation_id: Int32 | None = None
    client_id: str | None = None


class LogLine(_Decoded):
    """The fields that all lines have."""

    request_header: Header
    connection: str
    principal: str
    response_queue_time_ms: Milliseconds
    send_time_ms: Milliseconds
    throttle_time_ms: Annotated[float, msgspec.Meta(ge=0, lt=2**31)] | None = None
    local_time_ms: Milliseconds | None = None
    remote_time_ms: Milliseconds | None = None
    is_forwarded: bool | None = None


class ProducedPartition(_Decoded):
    """The records of one partition."""

    records_size_in_bytes: Size | None = None


class ProducedTopic(_Decoded):
    """The records of one topic."""

    name: str | None = None
    partition_data: list[ProducedPartition] | None = None


class ProduceRequest(_Decoded):
    """Who writes how much."""

    topic_data: list[ProducedTopic]
    acks: int | None = None
    transactional_id: str | None = None


class ProduceLine(LogLine, kw_only=True):
    """The answer stays undecoded: it is an empty text without acknowledgement, and seldom needed."""

    request: ProduceRequest
    response: msgspec.Raw = msgspec.Raw()


class Present(_Decoded):
    """A part of which only its presence counts."""


class FetchedPartition(_Decoded):
    """The records of one partition, and the optional fields of its answer. Brokers of 2.8 have another name for the size."""

    records_size_in_bytes: Size | None = None
    record_set_size_in_bytes: Size | None = None
    aborted_transactions: list[Present] | None = None
    diverging_epoch: Present | None = None
    current_leader: Present | None = None
    snapshot_id: Present | None = None


class FetchedTopic(_Decoded):
    """The records of one topic. Brokers of 2.8 have another name for its partitions."""

    topic: str | None = None
    partitions: list[FetchedPartition] | None = None
    partition_responses: list[FetchedPartition] | None = None


class FetchAnswer(_Decoded):
    """What a fetch brought."""

    responses: list[FetchedTopic]


class ReplicaState(_Decoded):
    """Of a follower, from version 15 on."""

    replica_id: int | None = None


class FetchRequest(_Decoded):
    """Who asks."""

    replica_id: int | None = None
    replica_state: ReplicaState | None = None


class FetchLine(LogLine, kw_only=True):
    """A fetch."""

    response: FetchAnswer
    request: FetchRequest | None = None


class AskedTopic(_Decoded):
    """A topic to create, extend or delete."""

    name: str | None = None
    topic_id: str | None = None
    num_partitions: Int32 | None = None
    count: Int32 | None = None
    """Of a topic to extend: its partitions afterwards."""
    assignments: list[Present] | None = None


class TopicsRequest(_Decoded):
    """CreateTopics, CreatePartitions and DeleteTopics."""

    topics: list[AskedTopic] | None = None
    topic_names: list[str] | None = None
    validate_only: bool | None = None


class AnsweredTopic(_Decoded):
    """What became of one topic."""

    name: str | None = None
    topic_id: str | None = None
    error_code: int | None = None
    num_partitions: Int32 | None = None


class TopicsAnswer(_Decoded):
    """The list of topics has three names."""

    topics: list[AnsweredTopic] | None = None
    results: list[AnsweredTopic] | None = None
    responses: list[AnsweredTopic] | None = None


class TopicsLine(LogLine, kw_only=True):
    """A request that creates, extends or deletes topics."""

    request: TopicsRequest | None = None
    response: TopicsAnswer | None = None


class ShownTopic(_Decoded):
    """A topic that an answer describes with all of its partitions."""

    name: str | None = None
    topic_id: str | None = None
    error_code: int | None = None
    partitions: list[Present] | None = None


class Cursor(_Decoded):
    """Where an answer begins or ends, which may be within a topic."""

    topic_name: str | None = None


class ShowingRequest(_Decoded):
    """Of DescribeTopicPartitions."""

    cursor: Cursor | None = None


class ShowingAnswer(_Decoded):
    """Of Metadata and DescribeTopicPartitions."""

    topics: list[ShownTopic] | None = None
    next_cursor: Cursor | None = None


class ShowingLine(_Decoded):
    """A request whose answer describes topics."""

    request: ShowingRequest | None = None
    response: ShowingAnswer | None = None


class _CodedPartition(_Decoded):
    error_code: int | None = None


class _CodedTopic(_Decoded):
    partition_responses: list[_CodedPartition] | None = None


class _CodedAnswer(_Decoded):
    responses: list[_CodedTopic] | None = None


DECODERS: Final[dict[int | None, msgspec.json.Decoder[Any]]] = {
    None: msgspec.json.Decoder(LogLine),
    PRODUCE: msgspec.json.Decoder(ProduceLine),
    FETCH: msgspec.json.Decoder(FetchLine),
    **dict.fromkeys(MUTATING, msgspec.json.Decoder(TopicsLine)),
}
"""By kind of request; ``None``: of any other, who asked and how long it took."""
_of_showing = msgspec.json.Decoder(ShowingLine)
_of_codes = msgspec.json.Decoder(_CodedAnswer)


def api_key(raw: bytes, start: int) -> int | None:
    """The request's API key; ``start``: where the document begins."""
    begin = raw.find(_API_KEY, start)
    if begin < 0:
        return None
    begin += len(_API_KEY)
    return _number(raw[begin : begin + _LONGEST_KEY])


@functools.lru_cache(maxsize=_BEGINNINGS_KEPT)
def _number(beginning: bytes) -> int | None:
    match = _KEY.match(beginning)
    return int(match[1]) if match else None


def answered_throttle_ms(raw: bytes, start: int) -> int:
    """The throttle that the answer states, whatever the line's own ``throttleTimeMs`` is; 0 for none.

    The two differ: of a refused mutation, only the answer has the time. No request has such a field. So the first one of a line
    is the answer's, or of an answer without it the line's own.
    """
    begin = raw.find(_THROTTLE, start) + len(_THROTTLE)
    if begin < len(_THROTTLE) or raw[begin : begin + 1] == b"0":
        return 0
    milliseconds = _number(raw[begin : begin + _LONGEST_NUMBER]) or 0
    return milliseconds if milliseconds <= _LONGEST_THROTTLE_MS else 0


def decode_showing(document: bytes) -> ShowingLine | None:
    """A request whose answer describes topics; ``None`` for a damaged one."""
    return decoded(_of_showing, document)


def produce_error_codes(line: ProduceLine) -> list[int | None]:
    """The error codes of all partitions of a produce answer."""
    answer = bytes(line.response)
    codes = decoded(_of_codes, answer) if answer.startswith(b"{") else None
    topics = codes.responses or [] if codes else []
    return [partition.error_code for topic in topics for partition in topic.partition_responses or []]


def decoded(decoder: msgspec.json.Decoder[Decoded], document: bytes) -> Decoded | None:
    """A document; ``None`` for one that is damaged or lacks a needed field."""
    try:
        return decoder.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Once more, for a log in another character set, or with a brace in what its layout writes behind the document.
        text = document.decode("utf-8", "replace")
        try:
            _, end = json.JSONDecoder().raw_decode(text)
            return decoder.decode(text[:end].encode("utf-8"))
        except (ValueError, msgspec.DecodeError, RecursionError):
            return None


_COMMON_LENGTH: Final = 23
"""Of ``2026-11-21 13:00:00,123``, which nearly every log has, in brackets at the very start."""
_SECONDS: Final = slice(1, 20)
_SECONDS_KEPT: Final = 1 << 12
_DATE: Final = re.compile(rb"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,6})\d*)? ?(?:([+-]\d{2}):?(\d{2})|(Z))?")
_COMMON: Final = re.compile(rb"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def check_zone(name: str, option: str = "--log-timezone") -> str:
    """The name of a zone that there is. Raises ``UsageError``, which blames ``option``."""
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise UsageError(f"{option} {name}: no such time zone: write a name such as UTC or Europe/Berlin") from error
    return name


class Moment(NamedTuple):
    """``micros``: since 1970. ``unclear``: the local time occurs twice or never, because the clocks were changed."""

    micros: int
    unclear: bool = False


class LineClock:
    """Reads the times of lines; local times are of one zone. Each second of the usual layout is read once."""

    def __init__(self, zone: str) -> None:
        self._zone = zoneinfo.ZoneInfo(zone)
        self._seconds: dict[bytes, Moment | None] = {}

    def read(self, raw: bytes, end: int) -> Moment | None:
        """The moment of a line whose message begins at ``end``; ``None`` without a time or a day of the calendar."""
        if end > _COMMON_LENGTH + 1 and raw.startswith(b"[") and raw.startswith(b",", 20) and raw.startswith(b"]", 24):
            milliseconds = raw[21:24]
            if milliseconds.isdigit():
                second = raw[_SECONDS]
                if second not in self._seconds:
                    if len(self._seconds) >= _SECONDS_KEPT:
                        self._seconds.clear()
                    self._seconds[second] = self._any_layout(second) if _COMMON.fullmatch(second) else None
                moment = self._seconds[second]
                return moment and Moment(moment.micros + int(milliseconds) * 1000, moment.unclear)
        return self._any_layout(raw[:end])

    def _any_layout(self, head: bytes) -> Moment | None:
        match = _DATE.search(head)
        if not match:
            return None
        day, clock, fraction, hours, minutes, zulu = (part.decode("ascii") if part else "" for part in match.groups())
        try:
            wall = datetime.datetime.fromisoformat(f"{day} {clock}.{fraction.ljust(6, '0')}")
            if hours:
                local = datetime.datetime.fromisoformat(f"{wall.isoformat()}{hours}:{minutes}")
            else:
                local = wall.replace(tzinfo=datetime.UTC if zulu else self._zone)
            unclear = local.utcoffset() != local.replace(fold=1).utcoffset()
            return Moment((local - _EPOCH) // _MICROSECOND, unclear)
        except (ValueError, OverflowError):
            return None
