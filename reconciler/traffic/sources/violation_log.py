"""Reads the broker's log of quota violations, and adds its throttles up by second. The log has no traffic.

Lines such as ``[2026-11-22 14:03:00,123] DEBUG Quota violated for sensor (Produce-alice:app). Delay time: (7284) (...)`` of the
loggers ``org.apache.kafka.server.quota.ClientQuotaManager`` and ``...ControllerMutationQuotaManager``; up to 4.1
``kafka.server.ClientQuotaManager``, ``ClientRequestQuotaManager`` and ``ControllerMutationQuotaManager``. Sources:
``ClientQuotaManager.recordAndGetThrottleTimeMs`` and ``getQuotaSensorName`` of Kafka 3.9 and 4.3.

A sensor is named by its kind and the values of its tags, joined by colons. Kafka's own tags are the user and the client-id.
The user is percent-encoded there and has no colon of its own, so the first colon ends it. Tags of a
``client.quota.callback.class`` are in no such order: their values are read the same way, and may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from reconciler.traffic.kinds import KEY_OF_KIND, Kind
from reconciler.traffic.sources.client_names import decode_user
from reconciler.traffic.sources.line_time import LineClock

VIOLATION: Final = b"Quota violated for sensor ("
_LINE: Final = re.compile(
    rb"Quota violated for sensor \((Produce|Fetch|Request|ControllerMutation)-([^:]*):(.*)\)\. Delay time: \((\d{1,18})\)",
    re.DOTALL,
)
_KINDS: Final = {b"Produce": Kind.PRODUCE, b"Fetch": Kind.FETCH, b"Request": Kind.REQUEST, b"ControllerMutation": Kind.MUTATION}
_SAMPLES: Final = 5
_SHOWN: Final = 200
_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaViolation:
    """A broker delayed a request by ``delay_ms``, at ``at_us`` (microseconds since 1970).

    ``user`` and ``client_id`` are ``None`` where the quota is not one of users, or of client-ids: then the group has all of them.
    A client without a client-id looks the same.
    """

    at_us: int
    broker: int
    kind: Kind
    user: str | None
    client_id: str | None
    delay_ms: int

    @property
    def until_us(self) -> int:
        """When the broker reads the client's connection again."""
        return self.at_us + self.delay_ms * 1000


@dataclass(slots=True)
class ViolationCounts:
    """Lines of violations that were read; ``unreadable``: without a clear time, or of another form, with some as ``samples``."""

    read: int = 0
    unreadable: int = 0
    samples: list[bytes] = field(default_factory=list)


def read_violations(
    lines: Iterable[bytes],
    *,
    broker: int,
    zone: str = "UTC",
    counts: ViolationCounts | None = None,
) -> Iterator[QuotaViolation]:
    """The violations of a broker's log, in its order; all other lines are skipped. ``zone``: of times without an offset."""
    clock, counts = LineClock(zone), counts or ViolationCounts()
    for line in lines:
        begin = line.find(VIOLATION)
        if begin < 0:
            continue
        moment, match = clock.read(line, begin), _LINE.match(line, begin)
        if moment is None or moment.unclear or match is None:
            counts.unreadable += 1
            if len(counts.samples) < _SAMPLES:
                counts.samples.append(line[:_SHOWN])
            continue
        counts.read += 1
        yield QuotaViolation(
            at_us=moment.micros,
            broker=broker,
            kind=_KINDS[match[1]],
            user=decode_user(match[2].decode("utf-8", "replace")) if match[2] else None,
            client_id=match[3].decode("utf-8", "replace") if match[3] else None,
            delay_ms=int(match[4]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledSecond:
    """What a broker logged about one client in one second: requests that it throttled, and until when.

    Times are microseconds since 1970. ``throttle_ms``: of all these requests together. Of a violation log the names are those of
    a quota group, and ``None`` is a name that its quota does not have.
    """

    broker: int
    key: str
    user: str | None
    client_id: str | None
    second: int
    requests: int
    throttle_ms: int
    longest_ms: int
    begin_us: int
    end_us: int


def throttled_seconds(violations: Iterable[QuotaViolation]) -> tuple[ThrottledSecond, ...]:
    """The violations of brokers' logs by quota group and second, in order of time."""
    by_place: dict[tuple[int, int, str, str | None, str | None], list[int]] = {}
    for violation in violations:
        place = (
            violation.at_us // _SECOND_US,
            violation.broker,
            KEY_OF_KIND[violation.kind].value,
            violation.user,
            violation.client_id,
        )
        sums = by_place.setdefault(place, [0, 0, 0, violation.at_us, violation.until_us])
        sums[0] += 1
        sums[1] += violation.delay_ms
        sums[2] = max(sums[2], violation.delay_ms)
        sums[3] = min(sums[3], violation.at_us)
        sums[4] = max(sums[4], violation.until_us)
    made = (
        ThrottledSecond(
            broker=broker,
            key=key,
            user=user,
            client_id=client_id,
            second=second,
            requests=requests,
            throttle_ms=throttle_ms,
            longest_ms=longest_ms,
            begin_us=begin_us,
            end_us=end_us,
        )
        for (second, broker, key, user, client_id), (requests, throttle_ms, longest_ms, begin_us, end_us) in by_place.items()
    )
    return tuple(
        sorted(made, key=lambda second: (second.second, second.broker, second.key, second.user or "", second.client_id or ""))
    )
