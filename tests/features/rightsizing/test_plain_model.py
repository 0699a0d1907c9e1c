"""The verdicts of whole runs against a model of a few lines, for clients whose rates are known by construction."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.rightsizing.sizing import QuotaUse, Sizing, judge_use
from reconciler.manifest import SizingRules
from reconciler.model import Coverage, QuotaKey, Verdict
from tests.builders import NOON
from tests.features.rightsizing.conftest import World, burst
from tests.support.backtest_reports import provenance

KEY = QuotaKey.PRODUCER_BYTE_RATE
KIB = 1024
DAYS = 100


@dataclass(frozen=True, kw_only=True)
class Client:
    """Bursts of one rate (KiB/s, on one broker) on some days of a hundred, under a limit (KiB/s)."""

    limit: int
    rate: int
    begin: int
    end: int


CLIENTS = st.builds(
    Client,
    limit=st.sampled_from([64, 256, 1024, 20 * 1024]),
    rate=st.sampled_from([1, 20, 80, 240, 300, 900, 5000]),
    begin=st.integers(0, 98),
    end=st.integers(0, DAYS),
)


def modelled(client: Client) -> str:
    """15 % is the margin of a hundred days, one broker cannot be lost, and no value is below 16 KiB/s."""
    if client.end <= client.begin or client.end <= DAYS - 90:
        return "unused"
    if client.rate > client.limit:
        return "raise"
    if client.rate * 1.15 > client.limit:
        return "fits" if client.rate * 1.15 < client.limit * 1.06 else "raise or fits"
    if client.rate > 0.33 * client.limit:
        return "fits"
    if client.end - client.begin <= 14 or client.end <= DAYS - 14:
        return "inconclusive"
    return "lower" if max(16, client.rate * 1.15 * 1.125) <= 0.8 * client.limit else "lower or fits"


@pytest.mark.bulk
@settings(max_examples=6)
@given(st.lists(CLIENTS, min_size=4, max_size=12))
def test_runs_agree_with_the_model(clients: list[Client]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.limits(**{f"c{number}": f"{client.limit}KiB" for number, client in enumerate(clients)})
        flows = [
            burst(f"c{number}", client.rate * KIB, since=client.begin, days=max(0, client.end - client.begin))
            for number, client in enumerate(clients)
        ]
        world.traffic(burst("whole", KIB, days=DAYS), *flows)
        sized = world.sized()
        for number, client in enumerate(clients):
            quota, wanted = sized[f"c{number}"], modelled(client).split(" or ")
            assert quota["verdict"] in wanted, (client, quota)
            if quota["value"] is not None:
                # With its margin in every case, and clear where the same history comes once more.
                assert quota["value"] >= 1.15 * client.rate * KIB
                assert quota["backtest"]["verdict"] == "clear"


USES = st.builds(
    QuotaUse,
    groups=st.just(1),
    highest=st.floats(0, 1e9),
    needed=st.one_of(st.none(), st.floats(16384, 1e9)),
    tight=st.floats(0, 1e9),
    verdict=st.sampled_from(Verdict),
    over=st.floats(0, 1),
    was_throttled=st.booleans(),
    doubt=st.one_of(st.none(), st.just("a hole")),
    first=st.just(NOON),
    last=st.datetimes(NOON.replace(tzinfo=None)).map(lambda at: min(at.replace(tzinfo=NOON.tzinfo), NOON.replace(month=6))),
)
RECORDED = Coverage(broker=1, requests=1, start=NOON, end=NOON.replace(month=6), minutes=1)
HISTORY = provenance(coverage=(RECORDED,))


@given(st.floats(1, 1e9), USES, st.booleans())
def test_no_evidence_lowers_a_limit_that_throttled_or_raises_it_by_less_than_it_has(
    limit: float, use: QuotaUse, of_default: bool
) -> None:
    sizing, _, value = judge_use(KEY, limit, use, HISTORY, SizingRules(), of_default=of_default, missing=None)
    if value is not None:
        assert value == use.needed
        assert abs(value - limit) >= 0.2 * limit or use.verdict is Verdict.THROTTLED
    if sizing is Sizing.LOWER:
        assert value is not None
        assert value < limit
        assert not use.was_throttled
        assert use.doubt is None
        assert use.verdict is not Verdict.THROTTLED
        assert use.highest <= 0.33 * limit * (1 + 1e-9)
    if use.verdict is Verdict.THROTTLED and sizing is not Sizing.UNUSED:
        assert sizing is Sizing.RAISE
        assert value is None or value > limit


@given(st.floats(1, 1e9), USES)
def test_a_value_that_was_proposed_is_not_changed_again_by_the_same_history(limit: float, use: QuotaUse) -> None:
    _, _, first = judge_use(KEY, limit, use, HISTORY, SizingRules(), of_default=False, missing=None)
    if first is not None and use.highest <= first and use.tight <= first:
        # Under its own value, the same traffic is clear.
        cleared = replace(use, verdict=Verdict.CLEAR)
        _, _, again = judge_use(KEY, first, cleared, HISTORY, SizingRules(), of_default=False, missing=None)
        assert again is None
