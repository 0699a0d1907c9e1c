"""Judging from seconds: rows, cells and cells without Spark agree, and none contradicts the exact verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Era
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND
from reconciler.traffic.sources.log_files import find_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SPLIT = {Entity.of({"user": DEFAULT, "client-id": DEFAULT}): {"producer_byte_rate": 40_000.0, "consumer_byte_rate": 50_000.0}}


def resolvers(quotas: dict[Entity, dict[str, float]]) -> dict[str, Resolver]:
    return {KEY_OF_KIND[kind].value: Resolver(quotas, KEY_OF_KIND[kind].value) for kind in BYTES}


def test_all_forms_agree(spark: SparkSession, recording: tuple[Path, dict[Entity, dict[str, float]]], tmp_path: Path) -> None:
    from reconciler.traffic.judging.by_seconds import Limits
    from reconciler.traffic.judging.grouping import group_series
    from reconciler.traffic.judging.locally import judged_locally
    from reconciler.traffic.judging.on_spark import judged_by_seconds, judged_exactly, judged_rows_by_seconds
    from reconciler.traffic.seconds.compact import Compaction, SourceFile
    from reconciler.traffic.seconds.folder import SegmentFolder
    from reconciler.traffic.seconds.reading import open_history, read_totals
    from reconciler.traffic.sources.on_spark import read_request_logs
    from tests.support.placed_totals import placed_totals

    log, quotas = recording
    rows = read_request_logs(spark, find_logs([f"1={log}"]), also=("file",)).cache()
    source = SourceFile(path=log, id="log", size=log.stat().st_size)
    Compaction(files={log.resolve(): source}, folder=SegmentFolder(tmp_path)).on_spark(rows)
    history = open_history(SegmentFolder(tmp_path))
    grouping = group_series(history.series, resolvers(quotas), resolvers(SPLIT))
    everything = range(len(grouping.groups))

    from_rows = judged_rows_by_seconds(rows, history.series, grouping, everything, Era.OVERLAPPING)
    from_cells = judged_by_seconds(placed_totals(spark, history, grouping, everything), grouping.groups, Era.OVERLAPPING)
    limits = Limits.of(grouping.groups, Era.OVERLAPPING)
    cells = list(read_totals(history, [one.key for one in history.series]))
    assert from_rows == from_cells == judged_locally(cells, history.series, grouping, everything, limits)
    assert sorted(from_rows) == list(everything)

    few = everything[:2]
    keys = [one.key for index, one in enumerate(history.series) if set(grouping.groups_of_series[index]) & set(few)]
    some = judged_locally(read_totals(history, keys), history.series, grouping, few, limits)
    assert some == {group: from_rows[group] for group in few}

    exact = judged_exactly(rows, history.series, grouping, DEFAULT_WINDOW)
    assert any(side.seconds_over for verdict in exact.groups.values() for side in verdict.sides)
    for number, verdict in exact.groups.items():
        for side, seconds in zip(verdict.sides, from_rows[number].sides, strict=True):
            assert side.seconds_over <= seconds.possible
            if grouping.groups[number].kind in BYTES[:1]:
                # A violation of less than half a millisecond's worth is no throttle; none is in these recordings.
                assert seconds.certain <= side.seconds_over
            elif seconds.certain:
                assert side.seconds_over
    rows.unpersist()
