"""Throttles that brokers logged themselves, added up by second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reconciler.traffic.kinds import KEY_OF_KIND
from reconciler.traffic.sources.violation_log import QuotaViolation

_SECOND_US: Final = 1_000_000


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
