"""Rows of the canonical traffic schema as a source: single requests, or sums of whole seconds.

The rows are in this process or on Spark's workers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.errors import TrafficError
from reconciler.hooks import added, load
from reconciler.model import GAUGE, BucketVerdict, Provenance
from reconciler.traffic.client_seconds import keyed_sums
from reconciler.traffic.client_totals import (
    CLIENT_TOTALS,
    GAUGE_TOTALS,
    MINUTE_TOTALS,
    SAMPLES,
    facts_of,
    minutes_of,
    series_of,
    statuses,
)
from reconciler.traffic.columns import NEEDED, ChargedRows, GroupIndex, More, keyed_requests, keyed_seconds
from reconciler.traffic.judging.by_seconds import POINTS, Lines, Points, by_group, judge_seconds_of, points_of
from reconciler.traffic.judging.evidence import Evidence, Gauge, gauges_of
from reconciler.traffic.judging.exact import (
    NULL,
    ORDER,
    REQUESTS,
    JudgedGroups,
    JudgedRequest,
    Work,
    judge_requests,
    judge_requests_of,
    judge_tokens_of,
    judge_topics,
    limited_groups,
    limits_of,
    result_of,
    sampled_groups,
    topics_as_requests,
)
from reconciler.traffic.judging.exact import SCHEMA as EXACT
from reconciler.traffic.judging.grouping import Grouping, Series, Tables, rows_of_groups
from reconciler.traffic.judging.verdicts import target_verdicts
from reconciler.traffic.kernels.exact_totals import TIME_BITS
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kernels.second_sums import SECOND_BITS
from reconciler.traffic.shuffle.rows import GroupWork, Pieces, Rows, Totals, whole_groups
from reconciler.traffic.sources.log_evidence import (
    CLUSTER,
    LINES_OF_BROKERS,
    NAMED_BROKERS,
    REQUEST_NUMBER,
    require_one,
    require_own_lines,
    usual_step,
)
from reconciler.traffic.sources.normal_form import DUPLICATE, IDENTITY_COLUMNS, SECOND_SUM, UNREADABLE, charge_second_sums
from reconciler.traffic.traffic_source import BacktestRequest, Source

_REQUEST: Final = (*NEEDED, "tie")
_TOPIC: Final = (*_REQUEST, "strict", "part")
_NUMBERS: Final = pa.schema([(REQUEST_NUMBER, pa.int64())])
_NUMBERS_READ: Final = 200_000
"""Lines whose correlation ids are looked at, about."""
_NOTES: Final = pa.schema([("what", pa.string()), ("broker", pa.int32()), ("text", pa.string())])


class TrafficSource:
    """Opened traffic: its clients and facts, and the judgements of quota groups, from the sums of whole seconds.

    The rows are gone through once for the clients, then once for each judgement.
    """

    of_requests: ClassVar[bool] = False
    """Whether its rows are single requests."""

    def __init__(
        self,
        rows: Rows[pa.RecordBatch],
        *,
        source: Source,
        files: Sequence[str],
        columns: Collection[str] = (),
        counted: pa.Table | None = None,
        is_stored: bool = False,
    ) -> None:
        """``columns``: what the rows have beside ``normal_form.ROWS``. Closes ``rows`` when it is closed.

        ``counted``: the totals of clients, where they are known already. ``is_stored``: rows are per-second totals that
        ``compact`` wrote, also those of mutations, and of other lines there are counts alone.

        Raises ``TrafficError`` when no request can be used, or when the rows are of several clusters.
        """
        self.rows = rows
        self._source = source
        self._files = tuple(files)
        self.columns = frozenset(columns)
        self.is_stored = is_stored
        try:
            counted = rows.total(CLIENT_TOTALS) if counted is None else counted
            lines = statuses(counted)
            self.gauges: tuple[Gauge, ...] = gauges_of(rows.total(GAUGE_TOTALS)) if lines.get(GAUGE) else ()
            notes = self._notes(unreadable=bool(lines.get(UNREADABLE)) and not is_stored)
            named = {int(number) for text in notes.get(NAMED_BROKERS, {}) for number in text.split(",")}
            samples = tuple(sorted(notes.get("detail", ()))[:SAMPLES])
            facts = facts_of(counted, self.gauges, source, files, samples, of_requests=self.of_requests)
            self.facts = replace(facts, named_brokers=tuple(sorted(named)), request_step=self._request_step(counted))
            clusters = {name: " and ".join(map(str, sorted(brokers))) for name, brokers in notes.get(CLUSTER, {}).items()}
            require_one({name: f"broker {brokers}" for name, brokers in clusters.items()})
            if lines.get(DUPLICATE) and not is_stored:
                require_own_lines(rows.total(LINES_OF_BROKERS))
            self.series: tuple[Series, ...] = series_of(counted)
        except BaseException:
            self.close()
            raise

    def by_seconds(self, grouping: Grouping, groups: Collection[int], window: Window) -> JudgedGroups:
        """Bounds from whole seconds, by group number, of those ``groups`` that have traffic."""
        judge = judge_seconds_of(Work.of(grouping.groups, window))
        return JudgedGroups(groups=result_of(self._of_seconds(grouping, groups, judge, EXACT, name="verdicts by seconds")).groups)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, BucketVerdict]:
        """Verdicts of token buckets, by target number: topic by topic, or from whole seconds where these are stored.

        ``groups`` are of mutations. ``window``: the controller's settings.
        """
        limits = limits_of(grouping.groups)
        if self.is_stored:
            table = self._of_seconds(grouping, groups, judge_tokens_of(limits, window), EXACT, name="seconds of mutations")
            sums = JudgedGroups(groups=result_of(table).groups)
            return target_verdicts(sums, self.series, grouping, window, stated=self.facts.states_throttles)

        def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
            return (judge_topics(topics, limits, window) for topics in whole_groups(pieces, TIME_BITS))

        work = self._of_requests(grouping, groups, judge, EXACT, name="verdicts of mutations", more=topic_columns, columns=_TOPIC)
        judged = result_of(self.rows.judge(work))
        return target_verdicts(judged, self.series, grouping, window, stated=self.facts.states_throttles)

    def evidence(self, question: BacktestRequest, tables: Sequence[Tables], provenance: Provenance) -> Evidence:
        """Verdicts of metrics, by the feature that knows them. ``tables``: the quotas before, where they are known, and after.

        Raises ``TrafficError`` without the feature.
        """
        judge = next(added("METRIC_JUDGES"), None)
        if judge is None:
            raise TrafficError("this traffic has metrics, and no installed feature judges them")
        judged: Evidence = load(judge)(self.gauges, self.rows, question, tables, provenance)
        return judged

    def minutes(self) -> Mapping[int, Integers]:
        """Return the minutes since 1970 with a line that can be read, charged or not, by broker, rising (int64)."""
        return minutes_of(self.rows.total(MINUTE_TOTALS))

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:
        """Return the rates of a few groups in the intervals of ``lines``, by group number, in amounts a second."""

        def judge(pieces: Pieces) -> Iterator[pa.RecordBatch]:
            yield points_of(((keys, amounts) for keys, amounts in pieces), lines)

        return by_group(self._of_seconds(grouping, groups, judge, POINTS, name="points of plots"), lines.grid)

    def between(self, start_us: int, end_us: int) -> Self:
        """The part of it from ``start_us`` on and before ``end_us``; ``close`` of this source closes both.

        Raises ``TrafficError`` when no request of that time can be used.
        """
        return type(self)(
            self.rows.between(start_us, end_us),
            source=self._source,
            files=self._files,
            columns=self.columns,
            is_stored=self.is_stored,
        )

    def close(self) -> None:
        """Release rows that Spark keeps; safe to call twice."""
        self.rows.close()

    def _index(self, grouping: Grouping, groups: Collection[int]) -> tuple[GroupIndex, Sequence[int]]:
        return GroupIndex.of(self.series, grouping, groups), rows_of_groups(self.series, grouping, groups)

    def _of_seconds(
        self,
        grouping: Grouping,
        groups: Collection[int],
        judge: Callable[[Pieces], Iterable[pa.RecordBatch]],
        schema: pa.Schema,
        *,
        name: str,
    ) -> pa.Table:
        """Return what ``judge`` gives of keys (``second_sums.keys_of``) and amounts, which are also made of sums."""
        index, expected = self._index(grouping, groups)
        work: GroupWork[pa.RecordBatch] = GroupWork(
            name=name,
            columns=NEEDED,
            send=functools.partial(keyed_seconds, groups=index),
            judge=judge,
            schema=schema,
            rows=expected,
            bits=SECOND_BITS,
            send_sums=functools.partial(keyed_sums, groups=index),
        )
        return self.rows.only(index.clients).judge(work)

    def _of_requests(
        self,
        grouping: Grouping,
        groups: Collection[int],
        judge: Callable[[Pieces], Iterable[pa.RecordBatch]],
        schema: pa.Schema,
        *,
        name: str,
        more: More | None = None,
        columns: tuple[str, ...] = _REQUEST,
    ) -> GroupWork[pa.RecordBatch]:
        index, expected = self._index(grouping, groups)
        return GroupWork(
            name=name,
            columns=columns,
            send=lambda batches: keyed_requests(batches, index, more),
            judge=judge,
            schema=schema,
            rows=expected,
            bits=TIME_BITS,
        )

    def _request_step(self, counted: pa.Table) -> float | None:
        """Return the usual step of all lines; of many lines, that of a slice of time in the middle of every broker's log."""
        if REQUEST_NUMBER not in self.columns:
            return None
        share = _NUMBERS_READ / max(1, sum(statuses(counted).values()))
        begin, end = pc.min(counted.column("start_us")).as_py(), pc.max(counted.column("end_us")).as_py()
        rows = self.rows
        if share < 1 and begin is not None:
            middle, half = (begin + end) // 2, int((end - begin) * share / 2)
            rows = rows.between(middle - half, middle + half + 1)
        work: Totals[pa.RecordBatch] = Totals(
            name="request numbers",
            columns=(REQUEST_NUMBER,),
            count=lambda batches: (batch.select([REQUEST_NUMBER]).drop_null() for batch in batches),
            schema=_NUMBERS,
            keys=(REQUEST_NUMBER,),
            folds={},
        )
        return usual_step(rows.total(work).column(0).to_numpy())

    def _notes(self, *, unreadable: bool) -> dict[str, dict[str, set[int]]]:
        """Texts that few rows have, by column, with the brokers that have them; details are the first of each share."""
        columns = [name for name in (CLUSTER, NAMED_BROKERS) if name in self.columns] + ["detail"] * unreadable
        if not columns:
            return {}
        work: Totals[pa.RecordBatch] = Totals(
            name="notes of lines",
            columns=("status", "broker", *columns),
            count=lambda batches: _notes_of(batches, columns),
            schema=_NOTES,
            keys=tuple(_NOTES.names),
            folds={},
        )
        notes: dict[str, dict[str, set[int]]] = {}
        for row in self.rows.total(work).to_pylist():
            notes.setdefault(row["what"], {}).setdefault(row["text"], set()).add(row["broker"])
        return notes


class RequestTraffic(TrafficSource):
    """Rows of the canonical traffic schema that are single requests."""

    of_requests: ClassVar[bool] = True

    def exactly(self, grouping: Grouping, window: Window) -> JudgedGroups:
        """Replay every request: verdicts by group number, counts by index of series."""
        work = Work.of(grouping.groups, window)
        judge = judge_requests_of(work)
        sent = self._of_requests(grouping, sampled_groups(grouping), judge, EXACT, name="verdicts of requests")
        return result_of(self.rows.judge(sent))

    def requests(self, grouping: Grouping, window: Window, controller_window: Window) -> Iterator[JudgedRequest]:
        """Every request under the proposed quotas, in the order of charging; the rows must have the identity columns."""
        work, after = Work.of(grouping.groups, window), limits_of(grouping.groups)[1]

        def judge_mutations(pieces: Pieces) -> Iterator[pa.RecordBatch]:
            return (topics_as_requests(topics, after, controller_window) for topics in whole_groups(pieces, TIME_BITS))

        columns, names = (*_TOPIC, *IDENTITY_COLUMNS), limited_groups(grouping, mutations=False)
        judge = functools.partial(judge_requests, work=work)
        works = [self._of_requests(grouping, names, judge, REQUESTS, name="requests", more=_of_identity, columns=columns)]
        if mutations := limited_groups(grouping, mutations=True):
            works.append(
                self._of_requests(
                    grouping, mutations, judge_mutations, REQUESTS, name="mutations", more=_of_topics_identity, columns=columns
                )
            )
        return (JudgedRequest(*row) for row in self.rows.judge_in_order(works, ORDER))


def open_rows(
    rows: Rows[pa.RecordBatch], *, source: Source, files: Sequence[str], columns: Collection[str] = (), has_sums: bool
) -> TrafficSource:
    """``RequestTraffic``, or ``TrafficSource`` where charged rows are sums of seconds, or where some deltas are.

    A single such delta has all rows judged by seconds. Raises ``TrafficError`` as both, and closes ``rows`` then.
    """
    try:
        counted = rows.total(CLIENT_TOTALS)
        if statuses(counted).get(SECOND_SUM):
            has_sums = True
            # Each delta within a second becomes a charged row.
            rows = rows.map(functools.partial(map, charge_second_sums), ("status",))
            counted = rows.total(CLIENT_TOTALS)
    except BaseException:
        rows.close()
        raise
    return (TrafficSource if has_sums else RequestTraffic)(rows, source=source, files=files, columns=columns, counted=counted)


def _notes_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    texts_of: dict[str, set[tuple[int | None, str]]] = {name: set() for name in columns}
    for batch in batches:
        for name, texts in texts_of.items():
            rows = batch.filter(pc.is_valid(batch.column(name)))
            if name == "detail":
                rows = rows.filter(pc.equal(rows.column("status").cast(pa.string()), UNREADABLE))
            if name == "detail":
                texts |= {(None, text) for text in rows.column(name).to_pylist()}
                texts_of[name] = set(sorted(texts, key=lambda note: note[1])[:SAMPLES])
            else:
                texts |= set(zip(rows.column("broker").to_pylist(), rows.column(name).to_pylist(), strict=True))
    notes = [{"what": name, "broker": broker, "text": text} for name, texts in texts_of.items() for broker, text in texts]
    yield pa.RecordBatch.from_pylist(notes, schema=_NOTES)


def topic_columns(rows: ChargedRows, batch: pa.RecordBatch) -> Sequence[Integers]:
    """Whether a topic is refused, as one without an API version is, and its place in the request."""
    strict = pc.fill_null(batch.column("strict"), pa.scalar(value=True)) if "strict" in batch.schema.names else None
    flags = np.ones(batch.num_rows, dtype=np.int64) if strict is None else strict.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return [flags if rows.rows is None else flags[rows.rows], rows.numbers(batch, "part")]


def _of_identity(rows: ChargedRows, batch: pa.RecordBatch) -> Sequence[Integers]:
    """The identity columns: a text, and two numbers with ``NULL`` for null."""
    columns = [batch.column(name) for name in IDENTITY_COLUMNS]
    texts = columns[0].cast(pa.string()).to_numpy(zero_copy_only=False)
    numbers = [pc.fill_null(column.cast(pa.int64()), NULL).to_numpy(zero_copy_only=False) for column in columns[1:]]
    return [values if rows.rows is None else values[rows.rows] for values in (texts, *numbers)]


def _of_topics_identity(rows: ChargedRows, batch: pa.RecordBatch) -> Sequence[Integers]:
    return [*topic_columns(rows, batch), *_of_identity(rows, batch)]
