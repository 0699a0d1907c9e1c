"""The broker's request log (JSON since Kafka 2.8) as rows of what is charged.

A line that holds ``Completed request:`` gives a row for each thing it is charged for: bytes of produce and fetch, time of
threads, topics created or deleted. ``status`` says what became of it; ``CHARGED`` rows carry the series (broker, kind, user,
client id), the charge time and the amount. A line that is charged for nothing has one row. The schema is ``COLUMNS``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.model.backtest import CONTROLLER
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.line_entries import entries, of_bytes_entry, unusable
from reconciler.traffic.sources.line_time import checked_zone, is_unclear, line_micros
from reconciler.traffic.sources.log_documents import (
    FETCH,
    MARKER,
    PRODUCE,
    SHARE_FETCH,
    Document,
    api_of,
    fetch_document,
    fetch_document_of_2_8,
    head_of,
    is_fetch_of_2_8,
    json_of,
    mutation_document,
    other_document,
    produce_document,
)
from reconciler.traffic.sources.log_files import BrokerFiles, literal_path
from reconciler.traffic.sources.mutations import MUTATING, is_strict
from reconciler.traffic.sources.one_cluster import CLUSTER, cluster_id
from reconciler.traffic.sources.statuses import CHARGED, EMPTY_THROTTLED, IDENTITY_COLUMNS, UNREADABLE

__all__ = ["CHARGED", "COLUMNS", "EMPTY_THROTTLED", "IDENTITY_COLUMNS", "LOG_KINDS", "UNREADABLE", "read_request_logs"]

COLUMNS: Final = (
    "status", "broker", "kind", "user", "client_id", "ts_us", "records", "overhead", "throttled", "tie", "detail", "strict",
    "part", "begins_line",
)  # fmt: skip
"""``ts_us``: charge time, microseconds since 1970, UTC. ``records`` + ``overhead``: charged bytes, nanoseconds or partitions.
``throttled``: as recorded. ``tie``: orders requests of one microsecond by content, so that no partitioning or file layout changes
a result. ``strict`` and ``part``: of mutations, as in the normal form. ``begins_line``: true in one row of each line."""
LOG_KINDS: Final = (Kind.PRODUCE, Kind.FETCH, Kind.REQUEST, Kind.MUTATION)
"""What a request log can tell. A connection has no line of its own."""


_DOCUMENTS: Final = ("p", "f", "m", "o")


def read_request_logs(
    spark: SparkSession,
    logs: Sequence[BrokerFiles],
    *,
    log_timezone: str = "UTC",
    also: Sequence[str] = (),
    kinds: Collection[Kind] = BYTES,
) -> DataFrame:
    """Rows of all brokers' logs, in no order. ``log_timezone`` is that of lines whose time has no offset.

    ``also``: further columns, of ``IDENTITY_COLUMNS``, ``one_cluster.CLUSTER`` and ``file`` (its address, as Spark writes it).
    ``kinds``: what to read, of ``LOG_KINDS``; lines of nothing else are ``OTHER_API``.

    Raises ``UsageError`` for an unknown time zone.
    """
    zone = checked_zone(log_timezone)
    frames = [
        spark.read.text([literal_path(f) for f in log.files])
        .select("value", F.col("_metadata.file_path").alias("file"))
        .withColumn("broker", F.lit(log.broker))
        for log in logs
    ]
    lines = frames[0]
    for frame in frames[1:]:
        lines = lines.unionAll(frame)
    return _rows(_documents(lines, zone, frozenset(kinds)), frozenset(kinds), also)


def _documents(lines: DataFrame, zone: str, kinds: frozenset[Kind]) -> DataFrame:
    marked = lines.where(F.col("value").contains(MARKER))
    cut = marked.select("broker", "file", "value", head_of(F.col("value")).alias("head"), json_of(F.col("value")).alias("json"))
    found = cut.select("*", api_of(F.col("json")).alias("api"))
    api, json = F.col("api"), F.col("json")
    mutating = api.isin(*MUTATING) if Kind.MUTATION in kinds else F.lit(False)
    others = Kind.REQUEST in kinds
    of_bytes = api.isin(PRODUCE, FETCH)
    other = (~of_bytes & ~mutating) if others else (api == SHARE_FETCH)
    parsed = found.select(
        "broker",
        "file",
        "value",
        "json",
        "api",
        line_micros(F.col("head"), zone).alias("line_us"),
        is_unclear(F.col("head"), zone).alias("unclear"),
        F.when(api == PRODUCE, produce_document(json)).alias("p"),
        F.when(api == FETCH, fetch_document(json)).alias("f"),
        F.when(mutating, mutation_document(json)).alias("m"),
        F.when(other, other_document(json)).alias("o"),
    )
    fetched = F.when(is_fetch_of_2_8(F.col("f")), fetch_document_of_2_8(json)).otherwise(F.col("f"))
    read = parsed.withColumn("f", fetched)
    # Each document is read once: without something that columns cannot pass, Spark reads it anew for each of its fields.
    kept = [name for name in read.columns if name not in _DOCUMENTS]
    held = read.select(*kept, F.explode(F.array_repeat(F.struct(*_DOCUMENTS), 1)).alias("d"))
    return held.select(*kept, *(F.col(f"d.{name}").alias(name) for name in _DOCUMENTS))


def _rows(documents: DataFrame, kinds: frozenset[Kind], also: Sequence[str]) -> DataFrame:
    """One row for each thing that a line is charged for."""
    fields = _fields(documents)
    judged = fields.select("*", unusable(kinds).alias("unusable"))
    detail = F.when(F.col("unusable") == UNREADABLE, F.concat_ws(": ", "file", F.substring("value", 1, 200)))
    further = {
        "connection": F.col("connection"),
        "correlation_id": F.col("correlation_id"),
        "recorded_throttle_ms": F.col("throttle_ms").cast("long"),
        "file": F.col("file"),
        CLUSTER: cluster_id(F.col("api"), F.col("value")),
    }
    lines = judged.select(
        "broker",
        "user",
        "client_id",
        "answered_us",
        "remote_us",
        "forwarded",
        (F.col("throttle_ms") > 0).alias("throttled"),
        F.xxhash64("connection", "correlation_id").alias("tie"),
        detail.alias("detail"),
        is_strict(F.col("api"), F.col("version")).alias("strict_api"),
        (entries(kinds) if kinds - set(BYTES) else F.array(of_bytes_entry())).alias("entries"),
        *(further[name].alias(name) for name in also),
    )
    # A filter by status cannot pass below an explode; there it would read the JSON anew for each field that it looks at.
    found = lines.select("*", F.explode("entries").alias("e"))
    topic = F.col("e.kind") == Kind.MUTATION.value
    columns = {
        "status": F.col("e.status"),
        "broker": F.when(topic & ~F.col("forwarded"), F.lit(CONTROLLER)).otherwise(F.col("broker")),
        "kind": F.col("e.kind"),
        "user": F.col("user"),
        "client_id": F.col("client_id"),
        # Topics are charged when the request is begun, before the controller waits for others.
        "ts_us": F.when(topic, F.col("answered_us") - F.col("remote_us")).otherwise(F.col("answered_us")),
        "records": F.col("e.records"),
        "overhead": F.col("e.overhead"),
        # Once a line, whatever it is charged for.
        "throttled": F.col("throttled") & F.col("e.begins_line"),
        "tie": F.col("tie"),
        "detail": F.col("detail"),
        "strict": F.when(topic, F.col("strict_api")),
        "part": F.col("e.part"),
        "begins_line": F.col("e.begins_line"),
    }
    return found.select(*(column.alias(name) for name, column in columns.items()), *also)


def _fields(documents: DataFrame) -> DataFrame:
    document = Document(produce=F.col("p"), fetch=F.col("f"), mutation=F.col("m"), other=F.col("o"))
    principal = document.common("principal")
    # The line's time is cut to whole milliseconds: half of one is the best guess for the rest.
    waited = F.round((document.common("responseQueueTimeMs") + document.common("sendTimeMs")) * 1000).cast("long")
    return documents.select(
        *("broker", "file", "value", "json", "api", "unclear", "p", "f", "m"),
        document.header("requestApiVersion").alias("version"),
        document.header("correlationId").alias("correlation_id"),
        F.coalesce(document.header("clientId"), F.lit("")).alias("client_id"),
        document.common("connection").alias("connection"),
        F.when(F.instr(principal, ":") > 0, principal.substr(F.instr(principal, ":") + 1, F.length(principal))).alias("user"),
        F.coalesce(document.common("isForwarded"), F.lit(False)).alias("forwarded"),
        F.coalesce(document.common("throttleTimeMs"), F.lit(0.0)).alias("throttle_ms"),
        document.common("localTimeMs").alias("local_ms"),
        F.coalesce(F.round(document.common("remoteTimeMs") * 1000), F.lit(0.0)).cast("long").alias("remote_us"),
        (F.col("line_us") + F.lit(500) - waited).alias("answered_us"),
    )
