"""What waiting clients go through, as a line of the report."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.backtest import Waiting
from reconciler.render.backtest_sentences import waiting_words

PULSING = Waiting(
    connections=2,
    requests=1200,
    complete=True,
    throughput=110_000.0,
    throughput_of_limit=1.12,
    waited=900,
    wait_median_s=1.14,
    wait_longest_s=12.4,
    behind_longest_s=54.0,
    pulse_of_limit=9.87,
    pulse_s=1.0,
    pulse_every_s=11.6,
)


def test_a_saturated_bucket_is_told_with_its_pulses() -> None:
    assert waiting_words(PULSING) == (
        "1.12 x the limit gets through while work is waiting; in pulses of 9.9 x a second's limit within 1 s, every 12 s; "
        "900 of 1,200 requests wait, half of them 1.1 s or less, none more than 12 s; up to 54 s behind the recording"
    )


def test_what_is_not_there_is_not_said() -> None:
    quiet = replace(
        PULSING, throughput_of_limit=0.0, waited=0, behind_longest_s=0.2, pulse_of_limit=None, pulse_s=None, pulse_every_s=None
    )
    assert waiting_words(quiet) == "no request meets a throttle when clients wait"
    assert waiting_words(replace(quiet, complete=False)).endswith("; of the first 1,200 requests")
