"""Answers of a Prometheus server to an instant query with a range selector, decoded into arrays.

An answer is some hundred bytes a series and thirty a sample: the pairs ``[seconds, "value"]``. Those stay bytes until a CSV
reader takes the pairs of many series at once: a Python object for each of them takes five times as long.
Sources: Prometheus documentation, "HTTP API" (``matrix`` results, ``warnings``); VictoriaMetrics documentation, "Cluster
availability" (``isPartial``).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv

from reconciler.errors import TrafficError
from reconciler.features.prometheus.metric_layouts import MetricSeries, Unattributed, is_identity_label, read_series
from reconciler.model import escaped
from reconciler.traffic import Integers

Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

_LINES: Final = bytes.maketrans(b"]", b"\n")
_SAMPLES_AT_ONCE: Final = 200_000
"""As many as the processor's cache has room for."""
_MOST_SERIES: Final = 300_000
_MOST_SAMPLES: Final = 500_000
"""Of one series: a day of samples is a sixth of it where a server scrapes each second."""
_LONGEST_LABELS: Final = 1 << 16
"""Bytes of the labels of one series, and of all warnings."""
LATEST_S: Final = 253_402_300_800.0
"""The year 10,000 begins, in seconds since 1970."""
_MOST_KNOWN: Final = 32 * 1024 * 1024
"""Bytes of labels whose client is remembered from page to page."""
_PARTIAL: Final = "isPartial"
"""What VictoriaMetrics sets when a part of its storage did not answer."""
_NOT_NUMBERS: Final = ["NaN", "+Inf", "-Inf", "Inf"]


class ForeignAnswerError(TrafficError):
    """An answer that is not a matrix of samples. The message has no address: the caller knows it."""


class _Raw(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    values: msgspec.Raw = msgspec.Raw()
    histograms: msgspec.Raw = msgspec.Raw()


class _Data(msgspec.Struct, gc=False, kw_only=True):
    result: list[_Raw]
    kind: str = msgspec.field(name="resultType")


class _Document(msgspec.Struct, gc=False):
    status: str
    data: _Data | None = None
    error: str = ""
    warnings: msgspec.Raw = msgspec.Raw()
    is_partial: bool = msgspec.field(name="isPartial", default=False)


CLUSTER_LABELS: Final = (
    "cluster", "kafka_cluster", "kafka_cluster_name", "kafka_cluster_id", "cluster_id", "cluster_name", "strimzi_io_cluster",
    "namespace", "kubernetes_namespace", "env", "environment", "stage", "region", "datacenter", "dc", "tenant", "job",
)  # fmt: skip
"""Brokers of one id with different values here are different brokers; in the order in which one is proposed as a matcher."""


@dataclass(frozen=True, slots=True)
class AnsweredSeries:
    """A series of an answer; its samples are not decoded yet. ``labels``: as JSON. ``place``: its ``CLUSTER_LABELS``."""

    labels: bytes
    read: MetricSeries | Unattributed | None
    place: tuple[str, ...]
    pairs: msgspec.Raw
    count: int

    def label_values(self) -> dict[str, str]:
        """All labels, with ``__name__``."""
        return msgspec.json.decode(self.labels, type=dict[str, str])

    def span_s(self) -> tuple[float, float]:
        """The times of the first and the last sample; there is one at least."""
        text = bytes(self.pairs)
        return float(text[2 : text.index(b",")]), float(text[text.rindex(b"[") + 1 : text.rindex(b",")])


@dataclass(frozen=True, slots=True)
class MatrixAnswer:
    """Series with samples, and what the server warns of: parts of the answer that are missing."""

    series: tuple[AnsweredSeries, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of several series, one series after the other. ``counts``: how many each has."""

    ts_ms: Integers
    values: Floats
    counts: Integers


_Known: TypeAlias = tuple[MetricSeries | Unattributed | None, tuple[str, ...]]
"""``read`` and ``place`` of a series."""


class AnswerReader:
    """Decodes answers, and remembers whose series it has seen."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Known] = {}
        self._known_bytes = 0
        self._decoder = msgspec.json.Decoder(_Document)

    def read(self, body: bytes) -> MatrixAnswer:
        """The series of an answer. Raises ``ForeignAnswerError``."""
        # A decoded series takes ten times its shortest text, so an answer of many empty ones is not decoded.
        if body.count(b"{") > 2 * _MOST_SERIES:
            raise ForeignAnswerError(f"the answer has more than {_MOST_SERIES:,} series")
        try:
            document = self._decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ForeignAnswerError(f"the answer is not a Prometheus document ({escaped(str(error))})") from error
        if document.status != "success" or document.data is None:
            raise ForeignAnswerError("the answer is not a Prometheus document")
        if document.data.kind != "matrix":
            raise ForeignAnswerError("the result is not a matrix")
        try:
            series = [self._series(raw) for raw in document.data.result]
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ForeignAnswerError(f"a series cannot be read ({escaped(str(error))})") from error
        partial = (_PARTIAL,) if document.is_partial else ()
        return MatrixAnswer(
            series=tuple(decoded for decoded in series if decoded.count > 0), warnings=(*_warnings(document), *partial)
        )

    def _series(self, raw: _Raw) -> AnsweredSeries:
        text = bytes(raw.values)
        if not text.startswith(b"[") and not bytes(raw.histograms):
            raise ForeignAnswerError("a series cannot be read (no values)")
        labels, count = bytes(raw.metric), text.count(b"[") - 1
        if len(labels) > _LONGEST_LABELS or count > _MOST_SAMPLES:
            raise ForeignAnswerError(f"a series has more than {_MOST_SAMPLES:,} samples, or labels that are too long")
        return AnsweredSeries(labels, *self._whose(labels), raw.values, count)

    def _whose(self, labels: bytes) -> _Known:
        known = self._known.get(labels)
        if known is None:
            values = msgspec.json.decode(labels, type=dict[str, str])
            place = tuple(values.get(name, "") for name in CLUSTER_LABELS)
            known = read_series(values), place
            if self._known_bytes > _MOST_KNOWN:
                self._known, self._known_bytes = {}, 0
            self._known[labels] = known
            self._known_bytes += len(labels)
        return known


def _warnings(document: _Document) -> tuple[str, ...]:
    text = bytes(document.warnings)
    if len(text) > _LONGEST_LABELS:
        return ("more warnings than can be shown",)
    try:
        return tuple(msgspec.json.decode(text, type=list[str] | None) or ()) if text else ()
    except msgspec.MsgspecError as error:
        raise ForeignAnswerError(f"the answer is not a Prometheus document ({escaped(str(error))})") from error


def samples_of(series: Sequence[AnsweredSeries]) -> Iterator[tuple[Sequence[AnsweredSeries], Samples]]:
    """The samples of series, some series at once. A value that is not a number is NaN. Raises ``ForeignAnswerError``."""
    begin = count = 0
    for end, answered in enumerate(series, start=1):
        count += answered.count
        if count >= _SAMPLES_AT_ONCE or end == len(series):
            yield series[begin:end], _decode(series[begin:end])
            begin, count = end, 0


def _decode(series: Sequence[AnsweredSeries]) -> Samples:
    counts = np.asarray([answered.count for answered in series], dtype=np.int64)
    # [[1.5,"2"],[3,"4"]] becomes ",1.5,2\n,3,4\n\n": lines of an empty field and two numbers.
    text = b"," + b",".join([memoryview(answered.pairs) for answered in series]).translate(_LINES, b'["')
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            read_options=pa.csv.ReadOptions(column_names=["", "at", "value"], use_threads=False, block_size=len(text) + 1),
            parse_options=pa.csv.ParseOptions(quote_char=False),
            convert_options=pa.csv.ConvertOptions(
                column_types={"": pa.null(), "at": pa.float64(), "value": pa.float64()}, null_values=["", *_NOT_NUMBERS]
            ),
        )
    except pa.ArrowInvalid as error:
        raise ForeignAnswerError("a sample cannot be read") from error
    at, value = (table.column(name).combine_chunks() for name in ("at", "value"))
    if len(at) != counts.sum() or at.null_count:
        raise ForeignAnswerError("a sample cannot be read")
    moments = at.to_numpy()
    if not ((moments >= 0) & (moments < LATEST_S)).all():
        raise ForeignAnswerError("a sample has a time that is not one of seconds since 1970")
    return Samples(
        ts_ms=np.rint(moments * 1000).astype(np.int64),
        values=np.asarray(value.to_numpy(zero_copy_only=False), dtype=np.float64),
        counts=counts,
    )


def timed_values(answer: MatrixAnswer) -> Iterator[tuple[AnsweredSeries, tuple[tuple[float, float], ...]]]:
    """The series of sensors with their samples: (seconds since 1970, value), oldest first. For minutes of series, not for days.

    Raises ``ForeignAnswerError`` while samples are taken.
    """
    for some, samples in samples_of([series for series in answer.series if series.read is not None]):
        pairs = zip((samples.ts_ms / 1000).tolist(), samples.values.tolist(), strict=True)
        for series, count in zip(some, samples.counts.tolist(), strict=True):
            yield series, tuple(itertools.islice(pairs, count))


_REPLICA_LABELS: Final = frozenset(
    {"replica", "__replica__", "prometheus_replica", "prometheus", "receive_replica", "receive", "ruler_replica", "monitor",
     "instance", "pod", "kubernetes_pod_name", "pod_name", "pod_ip", "container", "endpoint", "node", "host", "hostname", "uid"}
)  # fmt: skip
"""They differ between two servers that scrape one broker, or between two exporters beside it."""


class SeveralClustersError(TrafficError):
    """A broker id is that of several brokers."""


def drop_replicas(series: Sequence[AnsweredSeries]) -> tuple[list[AnsweredSeries], Counter[int]]:
    """Series of which no two show one client on one broker at a time, and how many were left out, by their broker.

    Raises ``SeveralClustersError``.
    """
    by_key: dict[MetricSeries, list[AnsweredSeries]] = {}
    for answered in series:
        if isinstance(answered.read, MetricSeries):
            by_key.setdefault(answered.read, []).append(answered)
    _require_one_cluster(by_key)
    kept: list[AnsweredSeries] = []
    replicas = Counter[int]()
    for key, same in by_key.items():
        if len(same) == 1:
            kept += same
            continue
        chosen: list[AnsweredSeries] = []
        for answered in sorted(same, key=lambda each: (-each.count, each.labels)):
            twice = next((other for other in chosen if _overlap(answered.span_s(), other.span_s())), None)
            if twice is None:
                chosen.append(answered)
            else:
                _require_replica(key.broker, answered, twice)
                replicas[key.broker] += 1
        kept += sorted(chosen, key=AnsweredSeries.span_s)
    return kept, replicas


def _require_one_cluster(by_key: Mapping[MetricSeries, Sequence[AnsweredSeries]]) -> None:
    """Brokers of several clusters need not have one client in common."""
    targets: dict[int, dict[tuple[str, ...], list[AnsweredSeries]]] = {}
    for key, same in by_key.items():
        for answered in same:
            targets.setdefault(key.broker, {}).setdefault(answered.place, []).append(answered)
    for broker, by_place in targets.items():
        if len(by_place) < 2:
            continue
        spans = {place: [answered.span_s() for answered in same] for place, same in by_place.items()}
        wholes = {place: (min(some)[0], max(end for _, end in some)) for place, some in spans.items()}
        for first, second in itertools.combinations(by_place, 2):
            if _overlap(wholes[first], wholes[second]):
                _require_replica(broker, by_place[second][0], by_place[first][0], CLUSTER_LABELS)


def _overlap(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return first[0] <= second[1] and second[0] <= first[1]


def _require_replica(broker: int, later: AnsweredSeries, earlier: AnsweredSeries, among: Sequence[str] = ()) -> None:
    first, second = later.label_values(), earlier.label_values()
    names = [name for name in among or sorted({*first, *second}) if first.get(name) != second.get(name)]
    telling = [name for name in names if name not in _REPLICA_LABELS and not is_identity_label(name)]
    if not telling:
        return
    name = min(telling, key=lambda name: CLUSTER_LABELS.index(name) if name in CLUSTER_LABELS else len(CLUSTER_LABELS))
    values = sorted({escaped(first.get(name, "")), escaped(second.get(name, ""))})
    raise SeveralClustersError(
        f'Two sources have samples of broker {broker} at the same time: their label {name} is "{values[0]}" and '
        f'"{values[-1]}". Choose one with --match \'{name}="{values[-1]}"\''
    )
