"""Verdicts and recommendations as rows of the published tables (``model.VERDICTS_SCHEMA``, ``model.RECOMMENDATIONS_SCHEMA``)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from reconciler.formats import canonical_bytes, entity_to_json
from reconciler.model import RECOMMENDATIONS_SCHEMA, VERDICTS_SCHEMA, BucketVerdict, Entity, FrameSchema

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False)),
    "array<double>": pa.list_(pa.float64()),
}
_ROWS_A_BATCH: Final = 10_000


def arrow_schema(schema: FrameSchema) -> pa.Schema:
    """The columns as Arrow and Parquet have them; name, version and meanings are metadata."""
    fields = [
        pa.field(column.name, _TYPES[column.type], nullable=column.nullable, metadata={"comment": column.meaning})
        for column in schema.columns
    ]
    return pa.schema(fields, metadata={"kafka-quotas.schema": schema.name, "kafka-quotas.schema-version": schema.version})


def verdict_batches(verdicts: Iterable[BucketVerdict]) -> Iterator[pa.RecordBatch]:
    """One row each, in their order."""
    return _batches(map(_verdict, verdicts), VERDICTS_SCHEMA)


def recommendation_batches(verdicts: Iterable[BucketVerdict]) -> Iterator[pa.RecordBatch]:
    """One row for each quota group with a recommended value, in the order of ``verdicts``, which are sorted worst first."""
    groups: dict[tuple[object, ...], list[BucketVerdict]] = {}
    for verdict in verdicts:
        if not verdict.undecided and verdict.advice.recommended is not None:
            groups.setdefault((verdict.key, verdict.name), []).append(verdict)
    return _batches(map(_recommendation, groups.values()), RECOMMENDATIONS_SCHEMA)


def pack_recommendations(verdicts: Iterable[BucketVerdict]) -> bytes:
    """The rows of ``recommendation_batches`` as a stream of Arrow."""
    sink, schema = pa.BufferOutputStream(), arrow_schema(RECOMMENDATIONS_SCHEMA)
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        for batch in recommendation_batches(verdicts):
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def _batches(rows: Iterator[dict[str, Any]], schema: FrameSchema) -> Iterator[pa.RecordBatch]:
    columns = arrow_schema(schema)
    while some := list(itertools.islice(rows, _ROWS_A_BATCH)):
        yield pa.RecordBatch.from_pylist(some, schema=columns)


def _verdict(verdict: BucketVerdict) -> dict[str, Any]:
    replay = verdict.replay
    return {
        **_group(verdict),
        "broker": verdict.broker,
        "entity": _entity(verdict.limits.entity),
        "limit_before": verdict.limits.lowest_before,
        "limits_before": list(verdict.limits.before),
        "limit_after": verdict.limits.after,
        "changed": verdict.changed,
        "verdict": verdict.verdict.value,
        "reason": verdict.reason,
        "undecided": verdict.undecided,
        "clients": max(1, len(verdict.recorded.members)),
        "requests": verdict.recorded.requests,
        "uncharged": verdict.recorded.uncharged,
        "throttled_then": verdict.recorded.throttled,
        "throttled_before": None if replay is None else replay.before,
        "throttled_after": None if replay is None else replay.throttled,
        "refused": None if replay is None else replay.refused,
        "partly_refused": None if replay is None else replay.partly_refused,
        "active_seconds": verdict.over.active,
        "seconds_certain": verdict.over.certain,
        "seconds_over": verdict.over.seconds,
        "seconds_possible": verdict.over.possible,
        "seconds_over_before": verdict.over.before,
        "share_over": verdict.over.share,
        "first": verdict.over.first,
        "longest_s": verdict.over.longest_s,
        "longest_from": verdict.over.longest_from,
        "peak": verdict.peak.rate,
        "censored": verdict.recorded.censored,
        "peak_bound": verdict.peak.bound.value,
        "headroom": verdict.headroom,
        "p999": verdict.peak.p999,
        "safe": verdict.advice.safe,
        "safe_p999": verdict.advice.safe_p999,
        "recommended": verdict.advice.recommended,
        "recommended_reason": verdict.advice.reason,
        "margin": verdict.advice.margin,
        "regrouped": verdict.limits.regrouped.value,
    }


def _recommendation(everywhere: Sequence[BucketVerdict]) -> dict[str, Any]:
    worst = everywhere[0]
    limits = [limit for verdict in everywhere if (limit := verdict.limits.lowest_before) is not None]
    return {
        **_group(worst),
        "entity": _entity(worst.limits.entity),
        "brokers": len(everywhere),
        "changed": any(verdict.changed for verdict in everywhere),
        "verdict": worst.verdict.value,
        "limit_before": min(limits, default=None),
        "limit_after": worst.limits.after,
        "peak": max(verdict.peak.rate for verdict in everywhere),
        "safe": worst.advice.safe,
        "safe_p999": worst.advice.safe_p999,
        "recommended": worst.advice.recommended,
        "recommended_reason": worst.advice.reason,
        "margin": worst.advice.margin,
    }


def _group(verdict: BucketVerdict) -> dict[str, Any]:
    """The quota group; a tag that is absent is null."""
    return {
        "key": verdict.key,
        "user": verdict.name.user or None,
        "client_id": verdict.name.client_id or None,
        "tags": list(verdict.name.other),
    }


@functools.lru_cache(maxsize=4096)
def _entity(entity: Entity | None) -> str | None:
    return None if entity is None else canonical_bytes(entity_to_json(entity)).decode()
