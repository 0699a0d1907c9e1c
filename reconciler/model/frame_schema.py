"""The published columns of recorded traffic that is read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """One column. ``type``: as in Spark's DDL. ``required``: whether a table that is read must have it."""

    name: str
    type: str
    meaning: str
    nullable: bool = False
    required: bool = True


_maybe: Final = partial(FrameColumn, nullable=True)
_optional: Final = partial(FrameColumn, nullable=True, required=False)


TRAFFIC_SCHEMA: Final = (
    FrameColumn("ts", "timestamp", "when it was counted, UTC. For counters and rates the end of the interval"),
    _maybe("interval_ms", "int", "0 for a single request. Otherwise the row covers the time from ts - interval to ts"),
    FrameColumn("broker", "int", "the broker that counted it"),
    _maybe("user", "string", "the principal's name without User:. Empty is an empty name, null is not known"),
    _maybe("client_id", "string", "likewise"),
    FrameColumn("kind", "string", "produce, fetch, request, mutation or connection"),
    FrameColumn("amount", "bigint", "bytes, nanoseconds of a thread, partitions or connections"),
    FrameColumn("semantics", "string", "event, delta (within one second) or gauge"),
    _optional("throttled", "boolean", "quotas throttled this when it was recorded. Null or no column: not known"),
    _optional("overhead", "bigint", "the part of amount that is not records. A fetch quota does not cut it"),
    _optional("tie", "bigint", "orders requests of one microsecond"),
    _optional("ip", "string", "for connections, which have neither user nor client_id"),
    _optional("strict", "boolean", "for mutations: refused when over (null: yes), or only delayed"),
    _optional("part", "int", "for mutations: the topic's number in its request, from 0 on"),
)
"""Recorded traffic. Other columns are ignored."""
