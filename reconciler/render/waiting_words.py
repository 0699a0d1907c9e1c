"""What throttled clients go through when they wait, in one line."""

from __future__ import annotations

from reconciler.model.backtest import Waiting


def waiting_words(waiting: Waiting) -> str:
    """Throughput, pulses and typical waits of a bucket."""
    said = []
    if waiting.throughput_of_limit:
        said.append(f"{waiting.throughput_of_limit:.2f} x the limit gets through while work is waiting")
    if waiting.pulse_of_limit is not None and waiting.pulse_s is not None and waiting.pulse_every_s is not None:
        said.append(
            f"in pulses of {waiting.pulse_of_limit:.1f} x the limit for {waiting.pulse_s:.0f} s, every {waiting.pulse_every_s:.0f} s"
        )
    if waiting.waited:
        said.append(
            f"{waiting.waited:,} of {waiting.requests:,} requests wait, {_seconds(waiting.wait_median_s)} in the middle, "
            f"{_seconds(waiting.wait_longest_s)} at most"
        )
    else:
        said.append("no request meets a throttle when clients wait")
    if waiting.behind_longest_s >= 1:
        said.append(f"up to {_seconds(waiting.behind_longest_s)} behind the recording")
    if not waiting.complete:
        said.append(f"of the first {waiting.requests:,} requests")
    return "; ".join(said)


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
