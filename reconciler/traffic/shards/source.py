"""One shard as recorded traffic: its clients and their rows, in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from reconciler.model import BucketVerdict
from reconciler.traffic.client_totals import sorted_series
from reconciler.traffic.columns.group_index import KeyIndex
from reconciler.traffic.judging.by_seconds import judge_seconds
from reconciler.traffic.judging.exact import SCHEMA as EXACT
from reconciler.traffic.judging.exact import (
    ExactResult,
    Work,
    judge_requests_of,
    judge_topics,
    limits_of,
    result_of,
    sampled_groups,
    tokens_by_seconds,
)
from reconciler.traffic.judging.grouping import Grouping, Series, rows_of_groups
from reconciler.traffic.judging.verdicts import request_verdicts, seconds_verdicts
from reconciler.traffic.kernels.exact_totals import pack
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kernels.second_sums import GroupVerdict, Rule
from reconciler.traffic.second_frames import judge_seconds_here, seconds_work, target_rows
from reconciler.traffic.shards.blocks import RowForm, ShardBlocks, require_known, series_numbers
from reconciler.traffic.shards.replays import add_replayed
from reconciler.traffic.shuffle.block import cut_into_pieces, sort_by_key
from reconciler.traffic.shuffle.rows import LocalRows, Pieces, whole_groups

FindLarge: TypeAlias = Callable[[Sequence[Series], Grouping], Mapping[int, int]]
"""By its number each group of a shard that was replayed outside it."""


class ShardSeconds:
    """Sums of whole seconds of the clients of a shard: a ``GroupJudge``."""

    def __init__(self, blocks: ShardBlocks, *, states_throttles: bool) -> None:
        """Raises ``TrafficError`` for rows of unknown clients, which no change of the traffic during the run explains."""
        self.states_throttles = states_throttles
        totals = blocks.totals()
        numbers = series_numbers(totals)
        self.series: tuple[Series, ...] = sorted_series(totals, numbers.tolist(), requests="lines")
        self._rows = blocks.rows
        known = np.sort(numbers)
        for parts in self._rows.values():
            for ids, *_ in parts:
                require_known(ids, known)

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """As ``GroupJudge.by_seconds``."""
        index, expected = KeyIndex.of(self.series, grouping, groups), rows_of_groups(self.series, grouping, groups)
        return judge_seconds(LocalRows(lambda _: self._second_rows), index.keyed, expected, grouping.groups, era)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """As ``GroupJudge.mutations``, from whole seconds."""
        keyed = KeyIndex.of(self.series, grouping, groups).keyed(self._second_rows)
        judged = tokens_by_seconds(keyed, grouping, groups, window)
        return seconds_verdicts(judged, self.series, grouping, window, stated=self.states_throttles)

    def seconds(self, grouping: Grouping, groups: Collection[int], windows: tuple[Window, Window]) -> pa.Table:
        """``second_frames.OF_GROUPS`` of these targets."""
        index = KeyIndex.of(self.series, grouping, groups)
        work = seconds_work(self.series, grouping, groups, windows, send=index.keyed)
        return judge_seconds_here(work, self._second_rows, target_rows(grouping, groups))

    @property
    def _second_rows(self) -> Sequence[tuple[Integers, Integers, Integers]]:
        return [(ids, seconds, amounts) for ids, seconds, amounts in self._rows[RowForm.SECONDS]]

    def _keyed(self, form: RowForm, grouping: Grouping, groups: Collection[int]) -> Pieces:
        """Key (``exact_totals.pack``), order, records, overhead, index of the series, and what else the rows have."""
        index = KeyIndex.of(self.series, grouping, groups)
        keys = np.asarray([client.key for client in self.series], dtype=np.int64)
        order = np.argsort(keys)
        parts = []
        for ids, milli, *columns in self._rows[form] if len(index.keys) else ():
            series = order[np.searchsorted(keys[order], ids)]
            where = np.minimum(np.searchsorted(index.keys, ids), len(index.keys) - 1)
            known = index.keys[where] == ids
            whole = [milli, *columns[:3], series, *columns[3:]]
            for group_of in index.slots:
                group = group_of[where]
                chosen = known & (group >= 0)
                if chosen.any():
                    time, *others = (column[chosen] for column in whole)
                    parts.append([pack(group[chosen], time), *others])
        return cut_into_pieces(sort_by_key(parts)) if parts else ()


class ShardRequests(ShardSeconds):
    """Single requests, or sums of whole seconds that were made of them. Mutations are there topic by topic.

    ``large``: finds the groups that were replayed outside the shard, by their numbers.
    """

    def __init__(self, blocks: ShardBlocks, large: FindLarge, *, states_throttles: bool) -> None:
        super().__init__(blocks, states_throttles=states_throttles)
        self._replayed, self._large = blocks.replayed, large

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """As ``GroupJudge.mutations``, topic by topic."""
        limits = limits_of(grouping.groups)
        topics = whole_groups(self._keyed(RowForm.TOPICS, grouping, groups))
        judged = pa.Table.from_batches((judge_topics(columns, limits, window) for columns in topics), schema=EXACT)
        return request_verdicts(result_of(judged), self.series, grouping, stated=self.states_throttles)

    def exactly(self, grouping: Grouping, window: Window) -> ExactResult:
        """As ``ReplayJudge.exactly``."""
        large = self._large(self.series, grouping)
        pieces = self._keyed(RowForm.REQUESTS, grouping, sampled_groups(grouping) - set(large.values()))
        judge = judge_requests_of(Work.of(grouping.groups, window))
        judged = pa.Table.from_batches(judge(pieces), schema=EXACT)
        return result_of(pa.concat_tables([judged, add_replayed(self._replayed, self.series, large)]))
