"""The token bucket: Kafka's own figures, and the running form against the plain one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.token_bucket import EXPIRY_MS, TokenBucket, permissive_tokens, play

MUTATIONS = st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 300)), min_size=1, max_size=150)


@pytest.mark.parametrize(("after_ms", "tokens"), [(EXPIRY_MS - 1, -701.0), (EXPIRY_MS, -701.0), (EXPIRY_MS + 1, 0.0)])
def test_a_debt_is_forgotten_after_more_than_an_hour_and_not_at_one(after_ms: int, tokens: float) -> None:
    """At one partition in a hundred seconds a full bucket has one, and an hour pays 36 of the 736 that are owed."""
    bucket = TokenBucket(0.01, Window(samples=100))
    assert bucket.take(737, 0, strict=False)
    assert bucket.tokens == pytest.approx(-736)
    assert bucket.take(1, after_ms, strict=False)
    assert bucket.tokens == pytest.approx(tokens, abs=1e-3)


@settings(max_examples=150)
@given(MUTATIONS, st.floats(0.05, 200))
def test_running_operations_equal_the_loop(drawn: list[tuple[int, int]], limit: float) -> None:
    times = 1_700_000_000_000 + np.cumsum([gap for gap, _ in drawn])
    amounts = np.asarray([amount for _, amount in drawn])
    bucket, wanted = TokenBucket(limit), []
    for at, amount in zip(times.tolist(), amounts.tolist(), strict=True):
        assert bucket.take(amount, at, strict=False)
        wanted.append(bucket.tokens)
    assert permissive_tokens(times, amounts, limit) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


def test_nothing_asked_is_nothing_refused() -> None:
    empty = np.empty(0, dtype=np.int64)
    assert len(permissive_tokens(empty, empty, 1.0)) == 0
    assert len(play(empty, empty, empty != 0, 1.0).refused) == 0
