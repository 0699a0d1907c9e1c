"""Small traffic, judged in this process without Spark: the functions that Spark's workers run, over rows sorted here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.model import Waiting
from reconciler.traffic.columns.counting import NAMES, fold
from reconciler.traffic.columns.places import KnownClients
from reconciler.traffic.counted import SAMPLES, facts_of, series_of
from reconciler.traffic.judging.by_seconds import Limits
from reconciler.traffic.judging.cell_keys import turns_of
from reconciler.traffic.judging.exact import (
    ExactResult,
    Work,
    batch_of,
    judge_batches,
    limits_of,
    numbers_of,
    result_of,
    sampled_groups,
)
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.history_gaps import may_have_gaps
from reconciler.traffic.judging.locally import judged_locally
from reconciler.traffic.judging.means import Mean, group_means, means_of
from reconciler.traffic.judging.outcome import Outcome, exact_outcomes
from reconciler.traffic.judging.rate_series import Lines, Points, points_here
from reconciler.traffic.judging.requests import ALSO, ORDER, JudgedRequest, judge_requests, limited_groups
from reconciler.traffic.judging.tokens import judge_topics, topics_as_requests
from reconciler.traffic.judging.waiting import CONNECTION_KEY, Player, waiting_of
from reconciler.traffic.kernels.exact_batch import MICRO_BITS, ORDER_BITS, TIME_BITS, pack
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.timeline import Integers
from reconciler.traffic.kinds import Kind
from reconciler.traffic.recorded import Source
from reconciler.traffic.sources.log_evidence import CLUSTER, NAMED_BROKERS, mark_copies, require_one
from reconciler.traffic.sources.request_numbers import REQUEST_NUMBER, usual_step
from reconciler.traffic.sources.row_status import CHARGED, UNREADABLE

_CONNECTION: Final = "connection"
_ROWS_A_BATCH: Final = 1 << 16
_MINUTE_US: Final = 60_000_000


class InProcess:
    """Rows as ``request_log`` and ``normal_form.rows_of`` have them, all in memory."""

    def __init__(self, batches: Iterable[pa.RecordBatch], *, source: Source, files: Sequence[str]) -> None:
        """Raises ``TrafficError`` when no request can be used, or when the rows are of several clusters."""
        found = list(batches)
        if not found:
            raise TrafficError(f"recorded traffic {files[0]}: it has no rows")
        rows = pa.Table.from_batches(found).unify_dictionaries().combine_chunks()
        rows = mark_copies(rows) if "begins_line" in rows.schema.names else rows
        self._minutes = _minutes(rows)
        counted = _counted(rows)
        self.means: tuple[Mean, ...] = means_of(group_means(rows)) if "interval_us" in rows.schema.names else ()
        self.facts = facts_of(
            counted,
            source,
            files,
            samples=lambda: _samples(rows),
            named=_named_brokers(rows),
            means=self.means,
            request_step=_request_step(rows),
        )
        _require_one_cluster(rows)
        self.series: tuple[Series, ...] = series_of(counted)
        self._rows = rows.filter(pc.equal(rows.column("status"), CHARGED)).combine_chunks()
        names = (self._rows.column(name).combine_chunks() for name in ("user", "client_id", "kind", "broker"))
        self._of = KnownClients.of(self.series).of_names(*names)
        """For each charged row its series."""

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        return judged_locally(self._cells(), self.series, grouping, groups, Limits.of(grouping.groups, era))

    def exactly(self, grouping: Grouping, window: Window) -> ExactResult:
        """Verdicts of all groups."""
        placed = self._placed(grouping, sampled_groups(grouping))
        batches = (batch_of(batch, numbers_of(batch, "series")) for batch in placed.to_batches(_ROWS_A_BATCH))
        return result_of(pa.Table.from_batches([judge_batches(batches, Work.of(grouping.groups, window))]))

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, Outcome]:
        """Outcomes of these groups, topic by topic."""
        limits = limits_of(grouping.groups)
        judged = [judge_topics(topics, limits, window) for topics in self._topics(grouping, groups)]
        return exact_outcomes(result_of(pa.concat_tables(judged)), grouping) if judged else {}

    def requests(self, grouping: Grouping, window: Window, controller_window: Window) -> Iterator[JudgedRequest]:
        """Every request under the proposed quotas, in the order of charging; the rows must have the identity columns."""
        placed = self._placed(grouping, limited_groups(grouping, mutations=False), also=ALSO)
        work, after = Work.of(grouping.groups, window), limits_of(grouping.groups)[1]
        found = [pa.Table.from_batches([batch]) for batch in judge_requests(placed.to_batches(_ROWS_A_BATCH), work)]
        topics = self._topics(grouping, limited_groups(grouping, mutations=True), also=ALSO)
        found += [topics_as_requests(of_group, after, controller_window) for of_group in topics]
        if not found:
            return
        whole = pa.concat_tables([table.select(JudgedRequest._fields).cast(found[0].schema) for table in found])
        ordered = whole.sort_by([(name, "ascending") for name in ORDER])
        for batch in ordered.to_batches(_ROWS_A_BATCH):
            columns = [column.to_pylist() for column in batch.columns]
            yield from (JudgedRequest(*values) for values in zip(*columns, strict=True))

    def waiting(self, grouping: Grouping, groups: Sequence[int], window: Window) -> Mapping[int, Waiting]:
        """Of these few groups, which are targets."""
        if _CONNECTION not in self._rows.schema.names:
            return {}
        placed = self._placed(grouping, set(groups), also=(_CONNECTION,))
        numbers = placed.column(_CONNECTION).combine_chunks().dictionary_encode().indices
        keyed = placed.append_column(CONNECTION_KEY, numbers.cast(pa.int64()))
        played = list(Player.of(grouping, groups, window).rows(keyed.to_batches(_ROWS_A_BATCH)))
        return waiting_of(pa.Table.from_batches(played))

    def minutes(self) -> Mapping[int, Integers]:
        """Of every line that can be read, charged or not: a broker that was quiet was recorded all the same."""
        return self._minutes if may_have_gaps(self.facts.coverage) else {}

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """Of these few groups."""
        return points_here(self._cells(), self.series, grouping, groups, lines)

    def close(self) -> None:
        """Nothing is held elsewhere."""

    def _cells(self) -> list[tuple[Integers, Integers, Integers]]:
        keys = np.asarray([one.key for one in self.series], dtype=np.int64)
        amounts = numbers_of(self._rows, "records") + numbers_of(self._rows, "overhead")
        return [(keys[self._of], numbers_of(self._rows, "ts_us") // 1_000_000, amounts)]

    def _topics(self, grouping: Grouping, groups: Collection[int], *, also: Sequence[str] = ()) -> Iterator[pa.Table]:
        """For each group a table as ``judge_topics`` takes them. Without an API version a row counts as refused."""
        mutations = {number for number in groups if grouping.groups[number].kind is Kind.MUTATION}
        placed = self._placed(grouping, mutations, also=tuple(dict.fromkeys(("ts_us", "strict", "part", *also))))
        of_group = numbers_of(placed, "key") >> TIME_BITS
        columns = {name: placed.column(name) for name in ("order_", "series", *also)} | {
            "group": pa.array(of_group.astype(np.int32)),
            "ts_ms": pa.array(numbers_of(placed, "ts_us") // 1000),
            "amount": pc.add(placed.column("records"), placed.column("overhead")),
            "strict": pc.fill_null(placed.column("strict"), pa.scalar(value=True)),
            "part": pc.fill_null(placed.column("part"), 0),
        }
        table = pa.table(columns)
        for number in np.unique(of_group).tolist():
            begin, end = np.searchsorted(of_group, (number, number + 1)).tolist()
            yield table.slice(begin, end - begin)

    def _placed(self, grouping: Grouping, groups: Collection[int], *, also: Sequence[str] = ()) -> pa.Table:
        """Columns ``key``, ``order_``, ``records``, ``overhead``, ``series`` and ``also``, in the order of their keys.

        A row whose group changes is there once for each of its groups.
        """
        turns = turns_of([[group for group in of_one if group in groups] for of_one in grouping.groups_of_series])
        rows, keys = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        ts_us = numbers_of(self._rows, "ts_us")
        for turn in turns:
            group = turn[self._of]
            mine = np.flatnonzero(group >= 0)
            rows.append(mine)
            keys.append(pack(group[mine], ts_us[mine] // 1000))
        place, key = np.concatenate(rows), np.concatenate(keys)
        order = np.argsort(key, kind="stable")
        place = place[order]
        rest = (1 << ORDER_BITS - MICRO_BITS) - 1
        told_apart = ts_us[place] % 1000 << ORDER_BITS - MICRO_BITS | numbers_of(self._rows, "tie")[place] & rest
        chosen = self._rows.select(list(dict.fromkeys(("records", "overhead", *also)))).take(pa.array(place))
        made = {"key": key[order], "order_": told_apart, "series": self._of[place].astype(np.int32)}
        columns = {name: pa.array(column) for name, column in made.items()}
        return pa.table(columns | dict(zip(chosen.column_names, chosen.columns, strict=True)))


def _named_brokers(rows: pa.Table) -> set[int]:
    if NAMED_BROKERS not in rows.schema.names:
        return set()
    listed = pc.unique(rows.column(NAMED_BROKERS)).drop_null().to_pylist()
    return {int(number) for text in listed for number in text.split(",")}


def _request_step(rows: pa.Table) -> float | None:
    if REQUEST_NUMBER not in rows.schema.names:
        return None
    return usual_step(rows.column(REQUEST_NUMBER).drop_null().to_numpy())


def _counted(rows: pa.Table) -> pa.Table:
    """As ``counted.added_up`` gives it; keys are any numbers."""
    charged = pc.equal(rows.column("status"), CHARGED)
    columns = {
        "status": rows.column("status"),
        **{name: pc.if_else(charged, rows.column(name), pa.scalar(None, rows.schema.field(name).type)) for name in NAMES[1:]},
        "lines": pa.repeat(1, rows.num_rows),
        "amount": pc.add(rows.column("records"), rows.column("overhead")),
        "largest": rows.column("records"),
        "start_us": rows.column("ts_us"),
        "end_us": rows.column("ts_us"),
        "throttled": rows.column("throttled").cast(pa.int64()),
    }
    found = fold(pa.table(columns))
    return found.append_column("key", pa.array(np.arange(found.num_rows)))


def _minutes(rows: pa.Table) -> dict[int, Integers]:
    timed = rows.select(["broker", "ts_us"]).drop_null()
    brokers, minutes = numbers_of(timed, "broker"), numbers_of(timed, "ts_us") // _MINUTE_US
    return {broker: np.unique(minutes[brokers == broker]) for broker in np.unique(brokers).tolist()}


def _samples(rows: pa.Table) -> tuple[str, ...]:
    details = rows.filter(pc.equal(rows.column("status"), UNREADABLE)).column("detail").drop_null()
    return tuple(sorted(details.to_pylist())[:SAMPLES])


def _require_one_cluster(rows: pa.Table) -> None:
    if CLUSTER not in rows.schema.names:
        return
    named = rows.select(["broker", CLUSTER]).drop_null().group_by(["broker", CLUSTER]).aggregate([])
    brokers: dict[str, list[str]] = {}
    pairs = sorted(zip(named.column("broker").to_pylist(), named.column(CLUSTER).to_pylist(), strict=True))
    for broker, cluster in pairs:
        brokers.setdefault(cluster, []).append(str(broker))
    require_one({name: f"broker {' and '.join(ids)}" for name, ids in brokers.items()})
