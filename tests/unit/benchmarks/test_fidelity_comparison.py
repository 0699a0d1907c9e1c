"""What the benchmark of fidelity makes of predictions and observations: shares, sums, proofs by seconds, demands, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.fidelity.comparison import BucketId, Pair
from benchmarks.fidelity.musts import Must, musts
from benchmarks.fidelity.open_loop import Noise, OpenLoopRun
from benchmarks.fidelity.seconds import SecondsFound, judged_seconds

BUCKET = BucketId(key="producer_byte_rate", broker=1, user="orders", client_id="")


def pair(predicted: int = 0, observed: int = 0, **other: Any) -> Pair:
    base = Pair(
        number=1, bucket=BUCKET, group="produce", at_ms=0.0, amount=1_000, limit=1_000.0, predicted_ms=predicted,
        observed_ms=observed,
    )  # fmt: skip
    return replace(base, **other)


def run(ahead: Sequence[Pair], **other: Any) -> OpenLoopRun:
    base = OpenLoopRun(
        scenario="mixed", kafka_version="4.3.1", brokers=1, seconds=10.0, requests=len(ahead),
        noise=Noise(late_p95=0.1, late_most=2.0, shift_p95=1.0, shift_near=0.99, opened_late=0), answers_unlike_log=0,
        unlimited_throttled=0, ahead=tuple(ahead), own=tuple(ahead), seconds_ahead=SecondsFound(clear=1),
        seconds_own=SecondsFound(clear=1), verdicts_wrong=(), verdicts_given={"throttled": 1},
    )  # fmt: skip
    return replace(base, **other)


def missed(found: Sequence[Must]) -> list[str]:
    return [one.what for one in found if not one.kept]


def over_for(seconds: int, *, throttled: Sequence[int], bucket: BucketId = BUCKET) -> list[Pair]:
    """3,000 bytes each second under a limit of 1,000: certainly over from the fifth second on."""
    return [
        pair(observed=5 if second in throttled else 0, at_ms=second * 1000.0 + 500, amount=3_000, bucket=bucket, number=second)
        for second in range(seconds)
    ]


def test_seconds_are_contradicted_when_a_certain_one_is_free():
    right = judged_seconds(over_for(8, throttled=range(3, 8)))
    wrong = judged_seconds(over_for(8, throttled=[*range(3, 7)]))

    assert right.certain == 4
    assert right.certain_unthrottled == 0
    assert wrong.certain_unthrottled == 1


def test_seconds_are_contradicted_when_a_clear_one_is_throttled():
    found = judged_seconds(over_for(8, throttled=[0, *range(4, 8)]))

    assert found.clear >= 1
    assert found.clear_throttled == 1


def test_a_run_without_error_keeps_every_demand():
    found = musts(run([pair(100, 100, number=n) for n in range(10)]))

    assert missed(found) == []
    assert len(found) == 9


def test_sums_and_verdicts_are_demanded():
    few = [pair(100, 100, number=n) for n in range(90)] + [pair(0, 130, number=n) for n in range(10)]

    assert missed(musts(run(few, own=()))) == [
        "produce: requests with the same verdict", "sum of all throttles",
        "sum of a produce bucket, the worst of 1",
    ]  # fmt: skip


def test_a_contradicted_proof_is_missed():
    found = run([pair()], seconds_own=SecondsFound(certain=3, certain_unthrottled=1), verdicts_wrong=("x: clear",))

    assert missed(musts(found)) == [
        "seconds of its own log that were the opposite", "verdicts by whole seconds that were the opposite",
    ]  # fmt: skip
