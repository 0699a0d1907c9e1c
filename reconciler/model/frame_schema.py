"""Published columns of tables: recorded traffic that is read, and verdicts, seconds and recommendations of a backtest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

_SPARK_NAMES: Final = {
    "string": "string", "int": "integer", "bigint": "long", "double": "double", "boolean": "boolean", "timestamp": "timestamp",
}  # fmt: skip
_TAGS: Final = "map<string,string>"
_LIMITS: Final = "array<double>"
_NESTED: Final[dict[str, dict[str, Any]]] = {
    _TAGS: {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": False},
    _LIMITS: {"type": "array", "elementType": "double", "containsNull": True},
}


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """One column. ``type``: as in Spark's DDL. ``required``: of a table that is read, whether the column must be there."""

    name: str
    type: str
    meaning: str
    nullable: bool = False
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSchema:
    """The columns of a table. A new column raises the minor version, any other change the major one."""

    name: str
    version: str
    columns: tuple[FrameColumn, ...]

    def to_spark(self) -> dict[str, Any]:
        """The document that ``StructType.fromJson`` of PySpark takes. Meanings are comments of the columns."""
        return {
            "type": "struct",
            "fields": [
                {
                    "name": column.name,
                    "type": _NESTED.get(column.type) or _SPARK_NAMES[column.type],
                    "nullable": column.nullable,
                    "metadata": {"comment": column.meaning},
                }
                for column in self.columns
            ],
        }


_maybe: Final = partial(FrameColumn, nullable=True)
_optional: Final = partial(FrameColumn, nullable=True, required=False)


TRAFFIC_SCHEMA: Final = FrameSchema(
    name="canonical-traffic",
    version="1.0",
    columns=(
        FrameColumn("ts", "timestamp", "when it was counted, UTC. For counters and rates the end of the interval"),
        _maybe("interval_ms", "int", "0 for a single request. Otherwise the row covers the time from ts - interval to ts"),
        FrameColumn("broker", "int", "the broker that counted it"),
        _maybe("user", "string", "the principal's name without User:. Empty is an empty name, null is not known"),
        _maybe("client_id", "string", "likewise"),
        FrameColumn("kind", "string", "produce, fetch, request, mutation or connection"),
        FrameColumn("amount", "bigint", "bytes, nanoseconds of a thread, partitions or connections"),
        FrameColumn("semantics", "string", "event, delta, gauge or mean"),
        _optional("throttled", "boolean", "quotas throttled this when it was recorded. Null or no column: not known"),
        _optional("overhead", "bigint", "the part of amount that is not records. A fetch quota does not cut it"),
        _optional("tie", "bigint", "orders requests of one microsecond"),
        _optional("ip", "string", "for connections, which have neither user nor client_id"),
        _optional("strict", "boolean", "for mutations: refused when over (null: yes), or only delayed"),
        _optional("part", "int", "for mutations: the topic's number in its request, from 0 on"),
    ),
)
"""Recorded traffic. Other columns are ignored."""

_GROUP: Final = (
    FrameColumn("key", "string", "the quota key"),
    FrameColumn("broker", "int", "the broker, or -1 for the active controller, whichever node it was"),
    _maybe("user", "string", "the user of the quota group. Null: the group has users of any name"),
    _maybe("client_id", "string", "the client-id of the quota group. Null: the group has client-ids of any name"),
    FrameColumn("tags", _TAGS, "further tags of the quota group: the address of connections, or those of a quota callback"),
)


VERDICTS_SCHEMA: Final = FrameSchema(
    name="verdicts",
    version="1.0",
    columns=(
        *_GROUP,
        _maybe("entity", "string", "whose proposed quota applies, as JSON with null for a default. Null: unlimited"),
        _maybe("limit_before", "double", "the lowest current limit of its clients. Null: unlimited, or not known"),
        FrameColumn("limits_before", _LIMITS, "all current limits of its clients, null for unlimited. Empty: not known"),
        _maybe("limit_after", "double", "the proposed limit. Null: unlimited"),
        FrameColumn("changed", "boolean", "the limit differs for a client, or its clients do"),
        FrameColumn("verdict", "string", "throttled, possible, clear or inconclusive"),
        _maybe("reason", "string", "why the verdict is inconclusive, or how a broker does not keep the limit"),
        FrameColumn("undecided", "boolean", "the names of the sender are not known well enough to state which quota applies"),
        FrameColumn("clients", "bigint", "how many clients the quota group has in this traffic"),
        FrameColumn("requests", "bigint", "recorded requests"),
        FrameColumn(
            "uncharged", "bigint", "recorded rows that count for nothing, because their amount or their time is not known"
        ),
        FrameColumn("throttled_then", "bigint", "requests that were throttled when they were recorded"),
        _maybe("throttled_before", "bigint", "requests that the current limits throttle. Null: not known"),
        _maybe("throttled_after", "bigint", "requests that the proposed limit throttles. Null: not replayed one by one"),
        _maybe("refused", "bigint", "of these, topics or connections that are refused"),
        FrameColumn("active_seconds", "bigint", "seconds with traffic"),
        FrameColumn("seconds_certain", "bigint", "seconds that are certainly over the proposed limit"),
        FrameColumn("seconds_over", "bigint", "seconds over the proposed limit, the best estimate"),
        FrameColumn("seconds_possible", "bigint", "seconds that may be over the proposed limit"),
        _maybe("seconds_over_before", "bigint", "seconds over the current limit. Null: not known"),
        FrameColumn("share_over", "double", "seconds_over as a part of active_seconds, 0 to 1"),
        _maybe("first", "timestamp", "the first throttled request, or its second"),
        FrameColumn("longest_s", "bigint", "the longest time over the limit, in seconds"),
        _maybe("longest_from", "timestamp", "when that began"),
        FrameColumn("peak", "double", "the largest rate that a broker would have measured, in the unit of the key"),
        FrameColumn(
            "censored", "boolean", "quotas throttled these clients when recorded: peak, safe and recommended are lower bounds"
        ),
        FrameColumn("peak_bound", "string", "exact, or upper or lower where the peak is a bound"),
        _maybe("headroom", "double", "limit_after divided by the peak"),
        _maybe("safe", "double", "the smallest round limit that throttles no recorded request on any broker"),
        _maybe("recommended", "double", "the safe limit with a margin for unseen traffic"),
        _maybe("recommended_reason", "string", "the parts of the recommended limit in words"),
        FrameColumn("margin", "double", "what the recommended limit adds, as a share"),
    ),
)
"""One row for each quota group of the proposed quotas on each broker."""

RECOMMENDATIONS_SCHEMA: Final = FrameSchema(
    name="recommendations",
    version="1.0",
    columns=(
        *(column for column in _GROUP if column.name != "broker"),
        _maybe("entity", "string", "whose proposed quota applies, as JSON with null for a default. Null: unlimited"),
        FrameColumn("brokers", "int", "on how many brokers the quota group has traffic"),
        FrameColumn("changed", "boolean", "the proposal changes it on some broker"),
        FrameColumn("verdict", "string", "the worst verdict of all brokers"),
        _maybe("limit_before", "double", "the lowest current limit. Null: unlimited, or not known"),
        _maybe("limit_after", "double", "the proposed limit. Null: unlimited"),
        FrameColumn("peak", "double", "the largest peak of all brokers"),
        _maybe("safe", "double", "the smallest round limit that throttles no recorded request on any broker"),
        FrameColumn("recommended", "double", "the safe limit with a margin for unseen traffic"),
        _maybe("recommended_reason", "string", "the parts of the recommended limit in words"),
        FrameColumn("margin", "double", "what the recommended limit adds, as a share"),
    ),
)
"""One row for each quota group whose traffic gives a value to write."""
