"""What a report says beside its counts: who shared limits, what to write, gaps, rates over time."""

from __future__ import annotations

import dataclasses
import datetime
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model import BucketVerdict, Coverage, ExpectedRecording, Verdict
from reconciler.model.backtest import NotJudged, UnjudgedChange
from reconciler.model.cluster import HistoryNeeds
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Finding, Severity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.judging.by_seconds import Grid, Lines, Points, by_group, groups_to_plot, points_of, rate_series
from reconciler.traffic.judging.exact import Work
from reconciler.traffic.judging.findings import throttle_findings
from reconciler.traffic.judging.grouping import Grouping, Series, group_series
from reconciler.traffic.judging.history_gaps import add_gaps, doubts_of, holes_of
from reconciler.traffic.judging.judged_quotas import (
    changed_quotas,
    rows_of_quotas,
    unjudged_changes,
    unjudged_findings,
    unused_quotas,
)
from reconciler.traffic.judging.verdicts import bare_row
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Integers
from reconciler.traffic.kernels.second_sums import ThrottledRates, bounds, keys_of
from reconciler.traffic.kinds import Kind
from reconciler.traffic.seconds.folder import minutes_in, ranges_of
from tests.support.backtest_reports import END, START, provenance, verdict

KEY = "producer_byte_rate"
ANYONE, PAIRS, APP = (
    Entity.of({"user": DEFAULT}),
    Entity.of({"user": DEFAULT, "client-id": DEFAULT}),
    Entity.of({"client-id": "a"}),
)
HOUR = datetime.timedelta(hours=1)
MINUTE = datetime.timedelta(minutes=1)


def grouped(before: dict[Entity, float] | None, after: dict[Entity, float], *, broker: int = 1) -> Grouping:
    def tables(quotas: dict[Entity, float]) -> dict[str, Resolver]:
        return {KEY: Resolver({entity: {KEY: value} for entity, value in quotas.items()}, KEY)}

    return group_series(clients(broker), None if before is None else tables(before), tables(after))


def clients(broker: int = 1) -> list[Series]:
    pairs = (("alice", "a"), ("alice", "b"), ("bob", "a"))
    return [
        Series(broker=broker, kind=Kind.PRODUCE, user=u, client_id=c, requests=9, amount=9, key=n)
        for n, (u, c) in enumerate(pairs, start=100)
    ]


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ({ANYONE: 5.0}, {PAIRS: 9.0}, [[("alice", "")], [("alice", "")], []]),
        ({PAIRS: 9.0}, {ANYONE: 5.0}, [[("alice", "a"), ("alice", "b")], []]),
        ({}, {ANYONE: 5.0}, [[], []]), ({ANYONE: 5.0}, {}, [[], []]), ({ANYONE: 5.0}, {ANYONE: 9.0}, [[], []]),
    ],
)  # fmt: skip
def test_clients_that_shared_limits_otherwise_name_their_quota_groups_from_before(
    before: dict[Entity, float], after: dict[Entity, float], names: list[list[tuple[str, str]]]
) -> None:
    grouping = grouped(before, after)
    found = [bare_row(index, grouping).limits.buckets_before for index in range(len(grouping.targets))]
    assert [[(name.user, name.client_id) for name in some] for some in found] == names


def covered(broker: int, start: float, end: float) -> Coverage:
    return Coverage(broker=broker, requests=5, start=START + start * HOUR, end=START + end * HOUR)


FIRST = int(START.timestamp()) // 60
"""The first minute of a history that begins at ``START``."""


def gaps(coverage: list[Coverage], minutes: dict[int, list[int]] | None = None) -> tuple[Coverage, ...]:
    """``minutes``: of the history, those in which a broker has lines; a broker without an entry has all of its own."""
    known = {broker: np.asarray(of_broker, dtype=np.int64) + FIRST for broker, of_broker in (minutes or {}).items()}
    return add_gaps(coverage, holes_of(coverage, known))


def missing(*minutes: range) -> tuple[int, datetime.datetime | None]:
    """Of a broker with eight hours of history: the minutes in holes, and the first of them."""
    (found,) = gaps([covered(1, 0, 8)], {1: [minute for some in minutes for minute in some]})
    assert found.minutes == 480
    return found.minutes_missing, found.first_missing


def test_a_hole_of_110_minutes_that_covers_no_whole_clock_hour_is_seen() -> None:
    assert missing(range(125), range(235, 480)) == (110, START + 125 * MINUTE)
    assert {minute // 60 for minute in (*range(125), *range(235, 480))} == set(range(8)), "with a line in every clock hour"


def test_a_silence_is_a_hole_when_it_is_unusual_for_its_broker() -> None:
    assert missing(range(480)) == (0, None)
    assert missing(range(100), range(109, 480)) == (0, None), "nine minutes are never a hole"
    assert missing(range(100), range(110, 480)) == (10, START + 100 * MINUTE)
    every_quarter = range(0, 480, 15)
    assert missing(every_quarter) == (0, None), "quiet by habit"
    assert missing(range(0, 241, 15), range(330, 480, 15)) == (0, None)
    assert missing(range(0, 241, 15), range(331, 480, 15)) == (90, START + 241 * MINUTE), "a hole whatever the habit"


def test_a_broker_that_is_recorded_from_later_on_has_a_hole_at_the_beginning() -> None:
    one, other = gaps([covered(1, 0, 8), covered(2, 2.5, 7.9)], {1: list(range(481))})
    assert (one.minutes, one.minutes_missing, one.first_missing, one.share) == (480, 0, None, 1.0)
    assert (other.minutes_missing, other.first_missing, other.share) == (150, START, 1 - 150 / 480)


def test_a_clear_bucket_of_a_broker_with_gaps_is_inconclusive_and_says_why() -> None:
    holes = gaps([covered(1, 0, 8), covered(2, 0, 8)], {1: list(range(420, 480)), 2: list(range(480))})
    history = provenance(coverage=holes)
    verdicts = [
        verdict(broker=1),
        verdict(broker=2),
        verdict(broker=1, verdict=Verdict.THROTTLED),
        verdict(broker=1, verdict=Verdict.POSSIBLE),
        verdict(broker=1, limit_after=None),
    ]
    why = [doubts_of(history, HistoryNeeds(hours=8))(one) for one in verdicts]
    assert why == [
        "broker 1 has no lines for 7 h of 8 h, first from 2026-11-20 08:00 UTC on, and 95 % are needed (history.coveragePercent)",
        *[None] * 4,
    ]
    assert doubts_of(history, HistoryNeeds(hours=8, coverage_percent=12.5))(verdicts[0]) is None


def test_a_history_that_is_too_short_or_lacks_brokers_clears_nothing() -> None:
    needed = "the history is 8 h long, and 24 h are needed (history.hours)"
    assert doubts_of(provenance(), HistoryNeeds(hours=24))(verdict()) == needed
    assert doubts_of(provenance(), HistoryNeeds(hours=8))(verdict()) is None
    # The files of a day: from its first request to its last.
    day = provenance(end=START + 24 * HOUR - datetime.timedelta(seconds=2))
    assert doubts_of(day, HistoryNeeds(hours=24))(verdict()) is None
    short = provenance(end=START + 24 * HOUR - datetime.timedelta(seconds=62))
    needed = "the history is 23 h 58 min 58 s long, and 24 h are needed (history.hours)"
    assert doubts_of(short, HistoryNeeds(hours=24))(verdict()) == needed
    many = provenance(coverage=(covered(1, 0, 8),), expected=ExpectedRecording(in_cluster=tuple(range(1, 14))))
    why = doubts_of(many, HistoryNeeds(hours=8))(verdict())
    assert "(1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more), and traffic of 1 is given (1): give" in str(why)


def throttled(verdicts: list[BucketVerdict]) -> list[Finding]:
    return list(throttle_findings(verdicts, {}, of_requests=True))


def test_what_may_be_throttled_is_told_once_and_only_where_nothing_is_certain() -> None:
    maybe = verdict(verdict=Verdict.POSSIBLE, seconds_possible=7, seconds_over=2, peak=120_000.0)
    (found,) = throttled([maybe, dataclasses.replace(maybe, broker=2)])
    assert (found.id, found.severity) == ("may-throttle", "info")
    assert "may have been throttled while producing, on broker 1 for up to 7 s of 67 min with traffic" in found.message
    assert "--exact decides. 118 KiB/s would have been safe." in found.message
    certain = dataclasses.replace(maybe, verdict=Verdict.THROTTLED, broker=3)
    assert [one.id for one in throttled([certain, maybe])] == ["would-throttle"]
    assert throttled([dataclasses.replace(maybe, changed=False)]) == []


def cells(seed: int, seconds: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Series keys, seconds and amounts, sorted by neither."""
    random = np.random.default_rng(seed)
    at = random.choice(seconds, size=seconds // 2, replace=False) + int(START.timestamp())
    of = random.integers(100, 103, size=len(at))
    return of.astype(np.int64), at.astype(np.int64), random.integers(0, 1000, size=len(at)).astype(np.int64)


LIMITS = grouped({ANYONE: 300.0}, {ANYONE: 150.0})
GRID = Grid.over([Coverage(broker=1, requests=1, start=START, end=START + datetime.timedelta(seconds=1999))])


@settings(max_examples=20)
@given(st.integers(0, 1000), st.lists(st.integers(0, 1000), max_size=6))
def test_points_are_the_largest_of_every_second_wherever_batches_end(seed: int, cuts: list[int]) -> None:
    of, at, amount = cells(seed)
    group = np.asarray([LIMITS.groups_of_series[key - 100][0] for key in of.tolist()], dtype=np.int64)
    key = keys_of(group, at)
    order = np.lexsort((key,))
    key, value = key[order], amount[order]
    lines = Lines(Work.of(LIMITS.groups, DEFAULT_WINDOW), GRID)
    whole = points_of([(key, value)], lines)
    parts = [*np.split(key, sorted(cuts))], [*np.split(value, sorted(cuts))]
    assert points_of(zip(*parts, strict=True), lines).equals(whole)

    unique, first = np.unique(key, return_index=True)
    sums = np.add.reduceat(value, first)
    found = bounds(unique, sums, DEFAULT_WINDOW)
    for number, points in by_group(pa.Table.from_batches([whole]), GRID).items():
        mine = unique >> 33 == number
        place = ((unique[mine] & ((1 << 33) - 1)) - GRID.start) // GRID.step_s
        for interval in range(GRID.count):
            here = place == interval
            assert points.rate[interval] == max(found.expected[mine][here], default=0.0)
            assert points.upper[interval] == max(found.upper[mine][here], default=0.0)
            _, over, possible = (
                flags[mine][here] for flags in found.over(ThrottledRates.of(np.full(len(unique), 150.0), None, DEFAULT_WINDOW))
            )
            before = found.over(ThrottledRates.of(np.full(len(unique), 300.0), None, DEFAULT_WINDOW))[1][mine][here]
            assert (points.over[interval], points.possible[interval], points.over_before[interval]) == (
                over.sum(), possible.sum(), before.sum(),
            )  # fmt: skip


def points_of_clients(totals: tuple[Integers, Integers, Integers], grouping: Grouping, groups: set[int]) -> dict[int, Points]:
    lines = Lines(Work.of(grouping.groups, DEFAULT_WINDOW), GRID)
    groups_of = {client.key: of_one for client, of_one in zip(clients(), grouping.groups_of_series, strict=True)}

    rows = [
        (group, second, amount)
        for key, second, amount in zip(*(column.tolist() for column in totals), strict=True)
        for group in groups_of[key]
        if group in groups
    ]
    group, second, amount = (np.asarray(column, dtype=np.int64) for column in zip(*rows, strict=True))
    keys = keys_of(group, second)
    order = np.argsort(keys, kind="stable")
    return by_group(pa.Table.from_batches([points_of([(keys[order], amount[order])], lines)]), GRID)


def test_a_split_bucket_takes_what_was_over_before_from_where_its_clients_were() -> None:
    split, grid, targets = grouped({ANYONE: 150.0}, {PAIRS: 150.0}), GRID, {0, 1, 2}
    groups = groups_to_plot(split, targets)
    assert groups == {0, 1, 2, 3}, "the earlier bucket of alice, too"
    points = points_of_clients(cells(5), split, groups)
    series = [rate_series(split, target, points, grid, None) for target in sorted(targets)]
    assert all(one is not None and len(one.rate) == len(one.over) == grid.count for one in series)
    earlier = points[3].over_before.tolist()
    assert series[0] is not None
    assert series[1] is not None
    assert list(series[0].over_before or ()) == list(series[1].over_before or ()) == earlier
    assert sum(earlier) > sum(series[0].over), "together they were over more often than each alone"


def test_an_interval_is_recorded_unless_all_of_it_is_in_a_hole() -> None:
    split = grouped({ANYONE: 150.0}, {PAIRS: 150.0})
    points = points_of_clients(cells(5), split, {0})
    grid = Grid(start=7200, step_s=1800, count=GRID.count)
    found = rate_series(split, 0, points, grid, np.asarray([[150, 210], [239, 301], [310, 400]], dtype=np.int64))
    assert found is not None
    # Half hours from minute 120 on.
    assert found.recorded[:9] == (True, False, False, True, False, False, True, False, False)
    assert found.recorded[9:] == (True,) * (GRID.count - 9)
    everything = rate_series(split, 0, points, grid, None)
    assert everything is not None
    assert all(everything.recorded)


def unjudged(
    before: dict[Entity, float] | None, after: dict[Entity, float], series: list[Series] | None = None
) -> list[tuple[str, NotJudged]]:
    """Entities and reasons, of byte rates of producers."""

    def quotas(of: dict[Entity, float]) -> dict[Entity, dict[str, float]]:
        return {entity: {KEY: value} for entity, value in of.items()}

    known = clients() if series is None else series
    tables = [{KEY: Resolver(quotas(of), KEY)} for of in (before, after) if of is not None]
    grouping = group_series(known, tables[0] if before is not None else None, tables[-1])
    unused = unused_quotas(known, grouping, tables[-1], (), quotas(after))
    change = None if before is None else quotas(before), quotas(after)
    rows = rows_of_quotas(known, grouping, tables)
    found = unjudged_changes(changed_quotas(*change), rows, change, unused, {one.kind for one in known})
    assert all(one.key == KEY for one in found)
    return [(str(one.entity), one.reason) for one in found]


QUIET, ALICE = Entity.of({"user": "quiet"}), Entity.of({"user": "alice"})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {QUIET: 5.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        (None, {QUIET: 5.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        ({QUIET: 5.0}, {QUIET: 5.0}, []),
        ({QUIET: 5.0}, {}, []),
        ({QUIET: 5.0, ANYONE: 9.0}, {ANYONE: 9.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        ({}, {ALICE: 5.0, QUIET: 5.0}, [("user=quiet", NotJudged.NO_CLIENT)]),
        ({ALICE: 5.0, ANYONE: 9.0}, {ANYONE: 9.0}, []),
        ({PAIRS: 1.0}, {PAIRS: 1.0, ANYONE: 2.0}, [("user=<default>", NotJudged.OVERRIDDEN)]),
    ],
)
def test_changes_that_limit_no_recorded_client_are_not_judged(
    before: dict[Entity, float] | None, after: dict[Entity, float], expected: list[tuple[str, NotJudged]]
) -> None:
    assert unjudged(before, after) == expected


def test_without_any_traffic_of_its_kind_no_change_is_judged() -> None:
    fetches = [dataclasses.replace(one, kind=Kind.FETCH) for one in clients()]
    assert not unjudged({}, {ALICE: 5.0}, clients())
    tables = {"consumer_byte_rate": Resolver({}, "consumer_byte_rate"), KEY: Resolver({}, KEY)}
    rows = rows_of_quotas(fetches, group_series(fetches, tables, tables), (tables, tables))
    (found,) = unjudged_changes([(ALICE, KEY)], rows, ({}, {ALICE: {KEY: 5.0}}), (), {Kind.FETCH})
    assert (found.entity, found.reason) == (ALICE, NotJudged.NO_TRAFFIC)
    assert found.why == "the history has no produce requests"


def test_a_client_that_is_known_in_part_may_be_the_one_whose_quota_changes() -> None:
    partly = [dataclasses.replace(clients()[0], user=None)]
    assert unjudged({}, {ALICE: 5.0}, partly) == []
    assert unjudged({}, {Entity.of({"client-id": "z"}): 5.0}, partly) == [("client-id=z", NotJudged.NO_CLIENT)]


def test_many_unjudged_changes_of_one_key_are_fifty_findings_and_a_count() -> None:
    changes = [
        UnjudgedChange(entity=Entity.of({"user": f"u{n:03}"}), key=KEY, before=None, after=1.0, reason=NotJudged.NO_CLIENT)
        for n in range(60)
    ]
    found = list(unjudged_findings(changes, {}))
    assert len(found) == 50
    assert {one.severity for one in found} == {Severity.WARNING}
    assert found[-1].message.endswith("10 more changed quotas of this key were not checked.")
    assert "more changed quotas" not in found[-2].message


def test_a_grid_is_never_finer_than_a_second_nor_longer_than_240_intervals() -> None:
    def grid(seconds: float) -> Grid:
        return Grid.over([Coverage(broker=1, requests=1, start=START, end=START + datetime.timedelta(seconds=seconds))])

    assert (grid(0).step_s, grid(0).count) == (1, 1)
    assert (grid(239.9).step_s, grid(239.9).count) == (1, 240)
    assert (grid(240).step_s, grid(240).count) == (2, 121)
    assert grid((END - START).total_seconds()).count == 239


@given(st.sets(st.integers(0, 300)))
def test_ranges_of_minutes_give_back_the_same_minutes(minutes: set[int]) -> None:
    ranges = ranges_of(sorted(minutes) * 2)
    assert minutes_in(ranges).tolist() == sorted(minutes)
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges)), "no two ranges touch"
