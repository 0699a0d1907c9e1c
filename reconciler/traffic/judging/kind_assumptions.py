"""What the judgement of each kind of traffic rests on, beside the arithmetic: said only where the history has that kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.resolution import AddressTable, QuotaTable
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.judging.unlogged_time import LEAST_FACTOR, unlogged_factor
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
