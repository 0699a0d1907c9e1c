"""Judging from seconds: rows, cells and cells without Spark agree, and none contradicts the exact verdict."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.judging.grouping import Group
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND
from reconciler.traffic.sources.log_files import find_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SPLIT = {Entity.of({"user": DEFAULT, "client-id": DEFAULT}): {"producer_byte_rate": 40_000.0, "consumer_byte_rate": 50_000.0}}


def resolvers(quotas: dict[Entity, dict[str, float]]) -> dict[str, Resolver]:
    return {KEY_OF_KIND[kind].value: Resolver(quotas, KEY_OF_KIND[kind].value) for kind in BYTES}


def _may_be_cut(group: Group, largest: int) -> bool:
    """Whether a broker asks its log for less than the largest fetch under one of the limits."""
    limits = [side.limit for side in (group.before, group.after) if side is not None and side.limit is not None]
    return any(largest > DEFAULT_WINDOW.fetch_cap(limit) for limit in limits)


@pytest.mark.parametrize("recording", ["kafka-4.3.1", pytest.param("kafka-3.9.2", marks=pytest.mark.large)], indirect=True)
def test_all_forms_agree(spark: SparkSession, recording: tuple[Path, dict[Entity, dict[str, float]]], tmp_path: Path) -> None:
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic import find_traffic, open_traffic
    from reconciler.traffic.judging.grouping import group_series
    from reconciler.traffic.seconds.folder import SegmentFolder
    from reconciler.traffic.seconds.stored_rows import open_folder
    from reconciler.traffic.sources.on_spark import request_log_rows
    from reconciler.traffic.traffic_source import RequestSource

    log, quotas = recording
    source = SourceFile(path=log, id="log", size=log.stat().st_size)
    with contextlib.closing(request_log_rows(spark, find_logs([f"1={log}"]), also=("file",))) as rows:
        Compaction(files={log.resolve(): source}, folder=SegmentFolder(tmp_path)).on_spark(rows)
    here, on_spark = (open_folder(SegmentFolder(tmp_path), lambda: spark, most_here=most) for most in (10**9, 0))
    grouping = group_series(here.series, resolvers(quotas), resolvers(SPLIT))
    everything = range(len(grouping.groups))

    traffic = open_traffic(find_traffic([f"1={log}"]), lambda: spark)
    from_rows = traffic.by_seconds(grouping, everything, DEFAULT_WINDOW)
    assert from_rows == here.by_seconds(grouping, everything, DEFAULT_WINDOW)
    assert from_rows == on_spark.by_seconds(grouping, everything, DEFAULT_WINDOW)
    assert sorted(from_rows) == list(everything)

    few = everything[:2]
    assert here.by_seconds(grouping, few, DEFAULT_WINDOW) == {group: from_rows[group] for group in few}

    assert isinstance(traffic, RequestSource)
    exact = traffic.exactly(grouping, DEFAULT_WINDOW)
    traffic.close()
    assert any(side.seconds_over for verdict in exact.groups.values() for side in verdict.sides)
    largest = dict.fromkeys(everything, 0)
    for client, groups in zip(here.series, grouping.groups_of_series, strict=True):
        largest |= {group: max(largest[group], client.largest) for group in groups}
    for number, verdict in exact.groups.items():
        for side, seconds in zip(verdict.sides, from_rows[number].sides, strict=True):
            assert side.seconds_over <= seconds.possible
            if grouping.groups[number].kind in BYTES[:1]:
                # A violation of less than half a millisecond's worth is no throttle; none is in these recordings.
                assert seconds.certain <= side.seconds_over
            elif seconds.certain and not _may_be_cut(grouping.groups[number], largest[number]):
                assert side.seconds_over
