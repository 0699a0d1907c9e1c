"""What throttled clients go through when they wait, in one line."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import Waiting

_WORTH_SAYING_S = 1


def waiting_words(waiting: Waiting) -> str:
    """Throughput, pulses and typical waits of a bucket."""
    return "; ".join(_said(waiting))


def _said(waiting: Waiting) -> Iterator[str]:
    if waiting.throughput_of_limit:
        yield f"{waiting.throughput_of_limit:.2f} x the limit gets through while work is waiting"
    if waiting.pulse_of_limit is not None and waiting.pulse_s is not None and waiting.pulse_every_s is not None:
        size, length, apart = waiting.pulse_of_limit, waiting.pulse_s, waiting.pulse_every_s
        yield f"in pulses of {size:.1f} x a second's limit within {length:.0f} s, every {apart:.0f} s"
    if waiting.waited:
        middle, longest = _seconds(waiting.wait_median_s), _seconds(waiting.wait_longest_s)
        yield f"{waiting.waited:,} of {waiting.requests:,} requests wait, half of them {middle} or less, none more than {longest}"
    else:
        yield "no request meets a throttle when clients wait"
    if waiting.behind_longest_s >= _WORTH_SAYING_S:
        yield f"up to {_seconds(waiting.behind_longest_s)} behind the recording"
    if not waiting.complete:
        yield f"of the first {waiting.requests:,} requests"


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
