"""Laws of when a client was throttled: samples show a throttle for up to a minute, and prove no more than that."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.insight.evidence import SHOWN_S, Stretch, join_stretches, nearest_stretch, recorded_stretches

pytest.importorskip("pyarrow")

from reconciler.traffic import Kind, RecordedThrottle

INTERVALS = st.sampled_from([1, 5, 15, 30, 60])


def sample(second: int, interval: int) -> RecordedThrottle:
    return RecordedThrottle(
        broker=1, kind=Kind.PRODUCE, user="alice", client_id=None, begin_us=second * 1_000_000, end_us=second * 1_000_000,
        requests=1, of_samples=True, interval_us=interval * 1_000_000,
    )  # fmt: skip


@given(
    throttles=st.lists(st.integers(0, 600), max_size=6), interval=INTERVALS, since=st.integers(0, 900), length=st.integers(1, 600)
)
def test_what_samples_prove_was_throttled(throttles: list[int], interval: int, since: int, length: int) -> None:
    until = since + length
    shown = [
        sample(second, interval)
        for second in range(0, 900, interval)
        if any(second - SHOWN_S < throttle <= second for throttle in throttles)
    ]

    for stretch in recorded_stretches(shown, since, until):
        assert since <= stretch.begin <= stretch.end <= until
        # A throttle from before the asked time, which samples still show, is none of it.
        assert any(since <= throttle <= stretch.end + SHOWN_S for throttle in throttles)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)), max_size=20), st.integers(0, 600))
def test_joined_stretches_cover_the_marks_and_keep_apart(marks: list[tuple[int, int]], second: int) -> None:
    made = join_stretches(Stretch(begin, begin + length) for begin, length in marks)

    assert all(any(one.begin <= begin and begin + length <= one.end for one in made) for begin, length in marks)
    assert all(later.begin - earlier.end > 12 for earlier, later in itertools.pairwise(made))
    assert (nearest_stretch(made, None) is None) is (not marks)


def test_a_throttle_that_ends_after_the_asked_time_keeps_its_end() -> None:
    logged = RecordedThrottle(
        broker=1, kind=Kind.PRODUCE, user="alice", client_id="app", begin_us=90_000_000, end_us=130_000_000, requests=1
    )

    assert list(recorded_stretches([logged], 0.0, 100.0)) == [Stretch(90.0, 130.0)]
    assert list(recorded_stretches([logged], 100.0, 200.0)) == [Stretch(100.0, 130.0)]
    assert list(recorded_stretches([logged], 131.0, 200.0)) == []
