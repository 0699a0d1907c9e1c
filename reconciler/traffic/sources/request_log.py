"""The broker's request log (JSON since Kafka 2.8) as rows of what is charged.

A line that holds ``Completed request:`` gives a row for each thing it is charged for: bytes of produce and fetch, time of
threads, topics created or deleted. ``status`` says what became of it; ``CHARGED`` rows carry the series (broker, kind, user,
client id), the charge time and the amount. A line that is charged for nothing has one row. The schema is ``COLUMNS``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.model.backtest import CONTROLLER
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.charged_size import fetch_overhead, fetch_records, produce_overhead, produce_records
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
    produce_error_codes,
)
from reconciler.traffic.sources.log_files import BrokerFiles, literal_path
from reconciler.traffic.sources.mutations import ENTRY, MUTATING, is_strict, mutations
from reconciler.traffic.sources.one_cluster import CLUSTER, cluster_id
from reconciler.traffic.sources.thread_time import is_exempt_api, thread_nanos

CHARGED: Final = "charged"
EMPTY_THROTTLED: Final = "empty-throttled"
"""A fetch that the broker throttled and answered empty: what it would have carried is not in the log."""
FOLLOWER: Final = "follower"
REFUSED: Final = "refused-transaction"
"""A transactional produce refused as a whole (error 53 everywhere) is not charged."""
UNSIZED: Final = "share-fetch"
"""Of a share group: charged as a fetch, but the log does not give its size."""
EXEMPT: Final = "exempt"
"""Its time is charged to nobody."""
OTHER_API: Final = "other-api"
UNCLEAR_TIME: Final = "unclear-time"
"""Its local time is there twice, or never, because the clocks were changed: it could be an hour off."""
UNREADABLE: Final = "unreadable"

COLUMNS: Final = (
    "status", "broker", "kind", "user", "client_id", "ts_us", "records", "overhead", "throttled", "tie", "detail", "strict",
    "part", "begins_line",
)  # fmt: skip
"""``ts_us``: charge time, microseconds since 1970, UTC. ``records`` + ``overhead``: charged bytes, nanoseconds or partitions.
``throttled``: as recorded. ``tie``: orders requests of one microsecond by content, so that no partitioning or file layout changes
a result. ``strict`` and ``part``: of mutations, as in the normal form. ``begins_line``: true in one row of each line."""
IDENTITY_COLUMNS: Final = ("connection", "correlation_id", "recorded_throttle_ms")
"""What tells requests apart; it makes rows large."""
LOG_KINDS: Final = (Kind.PRODUCE, Kind.FETCH, Kind.REQUEST, Kind.MUTATION)
"""What a request log can tell. A connection has no line of its own."""

_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
_SINCE_4_0: Final = r":\d+-\d+-\d+$"
"""Connections of brokers from 4.0 on end with port, processor and number."""


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
    return parsed.withColumn("f", fetched)


def _rows(documents: DataFrame, kinds: frozenset[Kind], also: Sequence[str]) -> DataFrame:
    """One row for each thing that a line is charged for."""
    fields = _fields(documents)
    judged = fields.select("*", _unusable(kinds).alias("unusable"))
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
        (_entries(kinds) if kinds - set(BYTES) else _of_bytes()).alias("entries"),
        *(further[name].alias(name) for name in also),
    )
    entry = F.explode("entries") if kinds - set(BYTES) else F.col("entries")
    found = lines.select("*", entry.alias("e"))
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


def _unusable(kinds: frozenset[Kind]) -> Column:
    """Why nothing can be taken from a line; null when something can."""
    api = F.col("api")
    of_its_kind = F.when(api == PRODUCE, F.col("p.request.topicData").isNotNull()).when(
        api == FETCH, F.col("f.response.responses").isNotNull()
    )
    if kinds - set(BYTES):
        of_its_kind = of_its_kind.otherwise(F.col("local_ms").isNotNull())
    else:
        of_its_kind = of_its_kind.otherwise(F.lit(True))
    complete = (
        F.col("answered_us").isNotNull()
        & F.col("version").isNotNull()
        & F.col("user").isNotNull()
        & F.col("connection").isNotNull()
        & of_its_kind
    )
    found = F.when(~F.coalesce(complete, F.lit(False)), F.lit(UNREADABLE)).when(F.col("unclear"), F.lit(UNCLEAR_TIME))
    if Kind.REQUEST in kinds:
        return found
    known = [PRODUCE, FETCH, SHARE_FETCH, *(MUTATING if Kind.MUTATION in kinds else ())]
    return F.when(~api.isin(*known), F.lit(OTHER_API)).otherwise(found)


def _entry(status: Column, kind: Column, records: Column, overhead: Column, *, begins_line: bool) -> Column:
    """A row's own part; the rest is the line's."""
    return F.struct(
        status.alias("status"),
        kind.alias("kind"),
        records.cast("long").alias("records"),
        overhead.cast("long").alias("overhead"),
        F.lit(None).cast("int").alias("part"),
        F.lit(begins_line).alias("begins_line"),
    )


def _of_bytes() -> Column:
    """The entry of a produce or fetch line, or of one that cannot be used."""
    api, version = F.col("api"), F.col("version")
    request, response = F.col("p.request"), F.col("f.response")
    records = F.when(api == PRODUCE, produce_records(request)).when(api == FETCH, fetch_records(response))
    overhead = F.when(api == PRODUCE, produce_overhead(version, F.col("client_id"), request)).when(
        api == FETCH, fetch_overhead(version, response)
    )
    kind = F.when(api == PRODUCE, F.lit(Kind.PRODUCE.value)).otherwise(F.lit(Kind.FETCH.value))
    status = F.coalesce(F.col("unusable"), F.when(api == SHARE_FETCH, F.lit(UNSIZED)), _charged_or_not())
    return _entry(status, kind, F.coalesce(records, F.lit(0)), F.coalesce(overhead, F.lit(0)), begins_line=True)


def _charged_or_not() -> Column:
    api, response = F.col("api"), F.col("f.response")
    codes = produce_error_codes(F.col("json"))
    refused = (F.array_size(codes) > 0) & F.forall(codes, lambda code: code == _TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    transactional = (api == PRODUCE) & F.col("p.request.transactionalId").isNotNull()
    empty = F.array_size(response["responses"]) == 0
    return (
        F.when(transactional, F.when(F.coalesce(refused, F.lit(False)), F.lit(REFUSED)).otherwise(F.lit(CHARGED)))
        .when(_is_follower(), F.lit(FOLLOWER))
        .when((api == FETCH) & empty & (F.col("throttle_ms") > 0), F.lit(EMPTY_THROTTLED))
        .otherwise(F.lit(CHARGED))
    )


def _is_follower() -> Column:
    fetch = F.col("f.request")
    replica = F.coalesce(fetch["replicaId"], fetch["replicaState"]["replicaId"], F.lit(-1))
    return (F.col("api") == FETCH) & (replica >= 0)


def _entries(kinds: frozenset[Kind]) -> Column:
    """All entries of a line, as an array that is never empty."""
    api, wanted = F.col("api"), F.col("unusable").isNull()
    of_bytes = F.array(_of_bytes())
    time = F.lit(Kind.REQUEST.value), thread_nanos(F.col("local_ms")), F.lit(0)
    exempt = is_exempt_api(api, F.col("forwarded"))
    status = F.coalesce(F.col("unusable"), F.when(exempt, F.lit(EXEMPT)).otherwise(F.lit(CHARGED)))
    alone = F.array(_entry(status, *time, begins_line=True))
    both = F.array(_of_bytes(), _entry(F.lit(CHARGED), *time, begins_line=False))
    free = _is_follower() | F.coalesce((api == PRODUCE) & (F.col("p.request.acks") == 0), F.lit(False))
    is_bytes = api.isin(PRODUCE, FETCH, SHARE_FETCH)
    if Kind.REQUEST not in kinds:
        found = F.when(~api.isin(*MUTATING) | ~wanted, of_bytes)
        alone = F.array(_entry(F.lit(OTHER_API), F.lit(Kind.MUTATION.value), F.lit(0), F.lit(0), begins_line=True))
    else:
        found = F.when(is_bytes & (free | ~wanted), of_bytes).when(is_bytes, both)
    if Kind.MUTATION not in kinds:
        return found.otherwise(alone)
    topics = _topic_entries(alone_too=Kind.REQUEST in kinds)
    several = F.concat(alone, topics) if Kind.REQUEST in kinds else F.when(F.array_size(topics) > 0, topics).otherwise(alone)
    return found.when(api.isin(*MUTATING) & wanted, several).otherwise(alone)


def _topic_entries(*, alone_too: bool) -> Column:
    """``alone_too``: the line has an entry of its own before these."""
    kraft = F.col("forwarded") | F.col("connection").rlike(_SINCE_4_0)
    topics = mutations(F.col("api"), F.col("m.request"), F.col("m.response"), kraft=kraft, charged=CHARGED)
    return F.transform(
        F.coalesce(topics, F.array().cast(f"array<{ENTRY}>")),
        lambda topic: F.struct(
            topic["status"].alias("status"),
            F.lit(Kind.MUTATION.value).alias("kind"),
            topic["partitions"].alias("records"),
            F.lit(0).cast("long").alias("overhead"),
            topic["part"].alias("part"),
            (F.lit(not alone_too) & (topic["part"] == 0)).alias("begins_line"),
        ),
    )
