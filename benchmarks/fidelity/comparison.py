"""Predicted against observed: request by request, and by bucket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from benchmarks.fidelity.arrivals import Client, Timer
from benchmarks.fidelity.prediction import Predicted
from benchmarks.fidelity.scenarios import Quotas, limits_of
from reconciler.model import BucketName
from reconciler.resolution.resolver import LimitLookup

_Key = TypeVar("_Key", bound=Any)

PRODUCE: Final = "produce"
FETCH: Final = "fetch"
TIMERS: Final = "timers"
REQUEST: Final = "request"
CONSUME: Final = "consumer_byte_rate"
_CLASS_OF: Final = {"producer_byte_rate": PRODUCE, CONSUME: FETCH, "request_percentage": REQUEST}
ENOUGH_THROTTLED: Final = 5
"""A bucket with fewer throttled requests has a sum that says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BucketId:
    """What shares a limit on one broker; empty names are absent tags."""

    key: str
    broker: int
    user: str
    client_id: str

    def __str__(self) -> str:
        names = ", ".join(name for name in (self.user, self.client_id) if name)
        return f"{names} on {self.broker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One charged request of a limited bucket: what was predicted, and what the broker did (ms)."""

    number: int
    bucket: BucketId
    group: str
    """``produce``, ``fetch``, ``timers`` or ``request``."""
    at_ms: float
    amount: float
    limit: float
    predicted_ms: int
    observed_ms: int

    @property
    def agrees(self) -> bool:
        return (self.predicted_ms > 0) == (self.observed_ms > 0)


def pairs(predicted: Iterable[Predicted], observed: Mapping[int, int], quotas: Quotas, clients: Sequence[Client]) -> list[Pair]:
    """Those of limited buckets, in the order of charging; ``observed`` has milliseconds by number."""
    resolvers = limits_of(quotas)
    bucket_of = _bucket_finder(resolvers)
    by_timer = {
        (client.kind, *bucket_of(_key_of(client), client.user, client.client_id))
        for client in clients
        if isinstance(client.pattern, Timer) and _key_of(client) in resolvers
    }
    found = []
    for one in predicted:
        if one.limit is None or one.number not in observed:
            continue
        user, client_id = bucket_of(one.key, one.user, one.client_id)
        group = _CLASS_OF[one.key]
        bucket = BucketId(key=one.key, broker=one.broker, user=user, client_id=client_id)
        found.append(
            Pair(
                number=one.number, bucket=bucket, group=TIMERS if (group, user, client_id) in by_timer else group,
                at_ms=one.at_ms, amount=one.amount, limit=one.limit, predicted_ms=one.throttle_ms,
                observed_ms=observed[one.number],
            )
        )  # fmt: skip
    return found


def _bucket_finder(resolvers: Mapping[str, LimitLookup]) -> Callable[[str, str, str], tuple[str, str]]:
    def bucket_of(key: str, user: str, client_id: str) -> tuple[str, str]:
        bucket: BucketName = resolvers[key].resolve(user, client_id).bucket
        return bucket_names(bucket)

    return bucket_of


def bucket_names(bucket: BucketName) -> tuple[str, str]:
    """User and client-id, or the group in the place of the user."""
    return dict(bucket.other).get("group", bucket.user), bucket.client_id


def _key_of(client: Client) -> str:
    return "producer_byte_rate" if client.kind == "produce" else CONSUME


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Some requests taken together. Errors are of requests throttled on either side, in ms; shares of nothing are 1."""

    requests: int
    throttled: int
    throttled_predicted: int
    wrong_verdicts: int
    sum_ms: int
    sum_predicted_ms: int
    error_median_ms: float
    error_p95_ms: float

    @property
    def agreement(self) -> float:
        return 1 - self.wrong_verdicts / self.requests if self.requests else 1.0

    @property
    def sum_error(self) -> float:
        """Predicted to observed, less 1."""
        return self.sum_predicted_ms / self.sum_ms - 1 if self.sum_ms else float(self.sum_predicted_ms > 0)


def summary(some: Sequence[Pair]) -> Summary:
    touched = [one for one in some if one.predicted_ms > 0 or one.observed_ms > 0]
    errors = sorted(abs(one.predicted_ms - one.observed_ms) for one in touched)
    return Summary(
        requests=len(some),
        throttled=sum(one.observed_ms > 0 for one in some),
        throttled_predicted=sum(one.predicted_ms > 0 for one in some),
        wrong_verdicts=sum(not one.agrees for one in some),
        sum_ms=sum(one.observed_ms for one in some),
        sum_predicted_ms=sum(one.predicted_ms for one in some),
        error_median_ms=quantile(errors, 0.5),
        error_p95_ms=quantile(errors, 0.95),
    )


def by_group(some: Sequence[Pair]) -> dict[str, Summary]:
    return _summaries(some, lambda one: one.group)


def by_bucket(some: Sequence[Pair]) -> dict[tuple[str, BucketId], Summary]:
    return _summaries(some, lambda one: (one.group, one.bucket))


def _summaries(some: Sequence[Pair], key: Callable[[Pair], _Key]) -> dict[_Key, Summary]:
    parts: dict[_Key, list[Pair]] = defaultdict(list)
    for one in some:
        parts[key(one)].append(one)
    return {name: summary(parts[name]) for name in sorted(parts)}


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest that at least this share does not exceed; 0 of nothing."""
    if not ordered:
        return 0.0
    return float(ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))])
