"""Assumptions of the judgement of each kind of traffic, and the factor for thread time that logs do not have.

A report names an assumption only where the history has that kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import BucketVerdict, QuotaKey, Verdict
from reconciler.resolution import AddressTable, QuotaTable
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kinds import BYTES, Kind


def kind_assumptions(
    series: Sequence[Series], proposed: QuotaTable, window: Window, controller_window: Window, *, of_requests: bool, source: str
) -> Iterator[str]:
    """``of_requests``: single requests are known, not only sums of seconds. ``source``: as ``Provenance`` has it."""
    kinds = {one.kind for one in series}
    if Kind.REQUEST in kinds:
        yield (
            "request_percentage: nanoseconds of a thread, in percent of one; one throttle is at most "
            f"{window.sample_ms / 1000:g} s. What brokers do not charge (followers, produce without acks) is not in the history"
        )
        if (factor := unlogged_factor(Kind.REQUEST.key.value, source)) > 1:
            yield (
                "request_percentage: a request log lacks the time of network threads. Brokers charged "
                f"{LEAST_FACTOR:g} to {factor:g} times the logged time (docs/fidelity.md). Peaks are logged time; a limit below "
                f"{factor:g} times the peak is not clear, and the safe and recommended values have this factor"
            )
    if Kind.REQUEST in kinds and not kinds.isdisjoint(BYTES):
        yield (
            "each quota is judged by itself: a request over two limits waits once, for the longer throttle, and a fetch held "
            "back by request_percentage is still charged its bytes here, which a broker takes back"
        )
    if Kind.MUTATION in kinds:
        yield (
            f"controller_mutation_rate: a bucket of tokens for {controller_window.expiry_ms / 1000:g} s of the limit "
            "(controller.quota.window.num, controller.quota.window.size.seconds), full at first on each controller; "
            + ("topic by topic" if of_requests else "from sums of whole seconds, whatever the topics and API versions in them")
            + "; a refused topic is asked for no second time, although clients retry"
        )
    if Kind.CONNECTION in kinds:
        yield (
            "connection_creation_rate: by address, each accepted connection once; what is over is closed after at most "
            f"{window.sample_ms / 1000:g} s and not counted, and its client's further tries are not modelled, nor are limits of "
            "a listener or a whole broker"
        )
        if names := len(AddressTable(proposed).host_names):
            which = "1 quota of a host name is" if names == 1 else f"{names} quotas of host names are"
            yield f"{which} about addresses that only brokers know, and not considered"


LEAST_FACTOR: Final = 1.6
LARGEST_FACTOR: Final = 3.2
"""Charged time as a multiple of the logged time."""
_LOGGED: Final = frozenset({"request-log", "cells"})
"""Sources whose times are those of handlers only. Compacted traffic may be of logs."""


def unlogged_factor(key: str, source: str) -> float:
    """What a recorded peak of ``key`` may be short of, as a factor."""
    return LARGEST_FACTOR if key == QuotaKey.REQUEST_PERCENTAGE.value and source in _LOGGED else 1.0


def judged_by_logged_time(verdicts: Sequence[BucketVerdict], source: str) -> tuple[BucketVerdict, ...]:
    """What the time that is not logged could carry above the limit is inconclusive."""
    return tuple(_verdict(one, unlogged_factor(one.key, source)) for one in verdicts)


def _verdict(one: BucketVerdict, factor: float) -> BucketVerdict:
    if factor <= 1 or one.verdict is not Verdict.CLEAR or one.limit_after is None or one.peak * factor <= one.limit_after:
        return one
    return replace(
        one,
        verdict=Verdict.INCONCLUSIVE,
        reason=(
            f"the request log lacks the time of network threads. Brokers charged {LEAST_FACTOR:g} to {factor:g} times the logged "
            f"time, so a logged peak of {one.peak:.3g} % may be {one.peak * factor:.3g} %"
        ),
    )
