"""Everything that judges, on random traffic, against everything else that could: Kafka's classes and a plain loop.

``local``: the kernel in this process; ``spark``: in Spark's workers, from rows, columns and cells.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.kernels.sampled_rate import Era, Window
from tests.support.quota_oracles import Arrival, Seconds, bounds, by_seconds, open_loop, replayed
from tests.support.random_traffic import FLOWS, Flow, arrivals_of, write_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from reconciler.traffic.judging.exact import JudgedGroups
    from reconciler.traffic.judging.grouping import Group, Grouping, Series
    from reconciler.traffic.kernels.exact_totals import SideVerdict
    from reconciler.traffic.request_traffic import RequestTraffic
    from reconciler.traffic.shuffle.rows import Rows

pytestmark = pytest.mark.spark
KEYS = {"produce": "producer_byte_rate", "fetch": "consumer_byte_rate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Traffic; the limit of every client alone before, and of each user's clients together after. Who is not named has none."""

    flows: Sequence[Flow]
    each: float
    together: Mapping[tuple[str, str], float]
    """By user and kind."""
    era: Era

    @property
    def arrivals(self) -> list[Arrival]:
        return arrivals_of(self.flows)

    @property
    def before(self) -> dict[Entity, dict[str, float]]:
        return {Entity.of({"user": DEFAULT, "client-id": DEFAULT}): dict.fromkeys(KEYS.values(), self.each)}

    @property
    def after(self) -> dict[Entity, dict[str, float]]:
        found: dict[Entity, dict[str, float]] = defaultdict(dict)
        for (user, kind), limit in self.together.items():
            found[Entity.of({"user": user})][KEYS[kind]] = limit
        return dict(found)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Limits are where it is hardest to tell: within what was measured."""
    flows, era = draw(FLOWS), draw(st.sampled_from(list(Era)))
    together = {}
    for place, mine in sorted(_by(arrivals_of(flows), "kind", "user").items()):
        share = draw(st.sampled_from([None, 1e-6, 0.3, 0.7, 0.9, 1.0, 1.01]))
        if share is not None:
            peak = max(max(open_loop(part, spare=True).values()) for part in _by(mine, "broker").values())
            together[str(place[1]), str(place[0])] = peak * share if share < 0.1 else max(1.0, float(round(peak * share)))
    return World(flows=flows, each=draw(st.sampled_from([1000.0, 12_345.678, 2.0**45])), together=together, era=era)


def _by(arrivals: Sequence[Arrival], *names: str) -> dict[tuple[object, ...], list[Arrival]]:
    found: dict[tuple[object, ...], list[Arrival]] = defaultdict(list)
    for one in arrivals:
        found[tuple(getattr(one, name) for name in names)].append(one)
    return found


def grouped(world: World, series: Sequence[Series]) -> Grouping:
    from reconciler.traffic.judging.grouping import group_series

    return group_series(series, Resolver.by_key(world.before, KEYS.values()), Resolver.by_key(world.after, KEYS.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One group as the oracles have it: whose requests, and under which limits."""

    arrivals: list[Arrival]
    limits: tuple[float | None, float | None]
    bucket: tuple[str, str, str] | None
    """Broker, kind and user, of a bucket after the change."""


def told(world: World, series: Sequence[Series], grouping: Grouping) -> dict[int, Told]:
    """What must be judged together, told from the traffic alone."""
    of_client, of_user = _by(world.arrivals, "broker", "kind", "user", "client_id"), _by(world.arrivals, "broker", "kind", "user")
    found = {}
    for number in range(len(grouping.groups)):
        members = [one for index, one in enumerate(series) if number in grouping.groups_of_series[index]]
        names = {(one.broker, one.kind.value, one.user, one.client_id) for one in members}
        (place,) = {name[:3] for name in names}
        after = number < len(grouping.targets)
        assert names == {name for name in of_client if name[:3] == place} if after else len(names) == 1
        # An empty client id cannot have the quota of a pair.
        alone = len(names) == 1 and next(iter(names))[3] != ""
        user, kind = str(place[2]), str(place[1])
        found[number] = Told(
            arrivals=of_user[place] if after else of_client[next(iter(names))],
            limits=(world.each if alone else None, world.together.get((user, kind)) if after else None),
            bucket=(str(place[0]), kind, user) if after else None,
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The same question, answered in all our ways."""

    series: tuple[Series, ...]
    grouping: Grouping
    seconds: Mapping[str, JudgedGroups]
    exact: Mapping[str, JudgedGroups | None]


def traffic_of(spark: SparkSession, files: Sequence[str]) -> dict[str, RequestTraffic]:
    """The same rows in every place where rows can be."""
    from reconciler.traffic.request_traffic import RequestTraffic
    from reconciler.traffic.shuffle.on_spark import KeptRows
    from reconciler.traffic.shuffle.rows import LocalRows
    from reconciler.traffic.sources.normal_form import ROWS
    from reconciler.traffic.sources.on_spark import normal_form_rows
    from reconciler.traffic.sources.parquet_parts import parts_of, read_part
    from reconciler.traffic.traffic_source import Source

    parts = parts_of(files)
    places: dict[str, Rows[pa.RecordBatch]] = {
        "local": LocalRows(lambda columns: (batch for part in parts for batch in read_part(part, columns))),
        "spark, read": normal_form_rows(spark, parts),
        "spark, kept": KeptRows.of_shares(spark, parts, lambda part: read_part(part, ROWS.names)),
    }
    return {way: RequestTraffic(rows, source=Source.NORMAL_FORM, files=files) for way, rows in places.items()}


def judged(spark: SparkSession, world: World, files: Sequence[Path], cells: Path) -> Judged:
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic.seconds.folder import SegmentFolder
    from reconciler.traffic.seconds.stored_rows import open_folder

    names, window = [str(file) for file in files], Window(era=world.era)
    traffic = traffic_of(spark, names)
    sources = {file.resolve(): SourceFile(path=file, id=file.stem, size=file.stat().st_size) for file in files}
    Compaction(files=sources, folder=SegmentFolder(cells)).of_normal_form(spark)
    stored = open_folder(SegmentFolder(cells), lambda: spark)
    series, grouping = stored.series, grouped(world, stored.series)
    groups = range(len(grouping.groups))
    try:
        return Judged(
            series=series,
            grouping=grouping,
            seconds={
                **{way: one.by_seconds(grouping, groups, window) for way, one in traffic.items()},
                "local, totals": stored.by_seconds(grouping, groups, window),
                "spark, totals": open_folder(SegmentFolder(cells), lambda: spark, most_here=0).by_seconds(
                    grouping, groups, window
                ),
            },
            exact={way: one.exactly(grouping, window) for way, one in traffic.items()},
        )
    finally:
        for one in traffic.values():
            one.close()


def in_seconds(side: SideVerdict) -> tuple[object, ...]:
    return side.certain, side.expected, side.possible, side.first_ms, side.longest_s, side.longest_from


def plainly(found: Seconds) -> tuple[object, ...]:
    first = next((second * 1000 for second in (*found.expected[:1], *found.possible[:1])), None)
    return (len(found.certain), len(found.expected), len(found.possible), first, *found.longest)


@pytest.fixture
def partitions(spark: SparkSession) -> Iterator[None]:
    """So many partitions as are asked for, not as few as Spark thinks fit."""
    changed = {"spark.sql.adaptive.coalescePartitions.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    kept = {name: spark.conf.get(name) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield
    for name, old in kept.items():
        if old is not None:
            spark.conf.set(name, old)


@pytest.mark.usefixtures("partitions")
@settings(
    max_examples=2,
    deadline=None,
    # Each of them is a dozen Spark jobs: too many to look for a smaller one.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(worlds(), st.sampled_from([1, 2, 7]), st.integers(1, 4), st.integers(0, 99))
def test_all_ways_agree_with_each_other_and_with_kafkas_classes(
    spark: SparkSession, tmp_path: Path, world: World, partitions: int, count: int, seed: int
) -> None:
    shutil.rmtree(tmp_path)
    files = write_files(tmp_path / "rows", world.arrivals, files=count, seed=seed)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    found = judged(spark, world, files, tmp_path / "cells")
    spare = world.era is Era.OVERLAPPING
    first = found.seconds["local"]
    for way, verdicts in found.seconds.items():
        assert verdicts == first, way
    exact = found.exact["local"]
    assert exact is not None
    for way, result in found.exact.items():
        assert result == exact, way
    groups = told(world, found.series, found.grouping)
    assert set(first.groups) == set(exact.groups) == set(groups)

    for number, oracle in groups.items():
        group, by_second, by_request = found.grouping.groups[number], first.groups[number], exact.groups[number]
        assert (_limit(group, "before"), _limit(group, "after")) == oracle.limits
        rates = open_loop(oracle.arrivals, spare=spare)
        sums = bounds(oracle.arrivals, spare=spare)
        assert (by_second.active, by_request.active) == (len(rates), len(rates))
        near = 0.9 * (oracle.limits[0] or float("inf"))
        assert by_request.near == sum(rate >= near for rate in rates.values())
        assert by_second.near == sum(s[2] >= near for s in sums)
        assert by_request.peak == pytest.approx(max(rates.values()), rel=1e-9)
        assert by_second.peak == max(s[3] for s in sums)
        for limit, side, requests in zip(oracle.limits, by_second.sides, by_request.sides, strict=True):
            seconds = by_seconds(oracle.arrivals, limit, spare=spare)
            assert in_seconds(side) == plainly(seconds)
            kafka = replayed(oracle.arrivals, limit, spare=spare)
            assert (requests.throttled, requests.expected) == (kafka.throttled, len(kafka.seconds))
            assert requests.first_ms == kafka.first_ms
            # What is certain is over and what is clear is not, in the rate without throttling and in what is throttled.
            over = {second for second, rate in rates.items() if limit is not None and rate > limit}
            assert set(seconds.certain) <= over <= set(seconds.possible)
            assert kafka.seconds <= set(seconds.possible)
            if group.kind.value == "produce" and limit is not None:
                # Whatever the throttle is rounded and narrowed to.
                assert set(seconds.certain) <= kafka.seconds


def _limit(group: Group, side: str) -> float | None:
    found = getattr(group, side)
    return None if found is None else found.limit
