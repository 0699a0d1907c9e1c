"""The broker's request log (JSON since Kafka 2.8) as rows of charged requests.

One row a line that holds ``Completed request:``, with ``STATUS`` saying what the line is; ``CHARGED`` rows carry the series
(broker, kind, user, client id), the charge time and the charged bytes. The schema is ``COLUMNS``.
"""

from __future__ import annotations

import itertools
import zoneinfo
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciler.errors import UsageError
from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.charged_size import fetch_overhead, fetch_records, produce_overhead, produce_records
from reconciler.traffic.sources.log_files import BrokerFiles

MARKER: Final = "Completed request:"

_PRODUCE: Final = 0
_FETCH: Final = 1
"""The API keys."""

CHARGED: Final = "charged"
EMPTY_THROTTLED: Final = "empty-throttled"
"""A fetch that the broker throttled and answered empty: what it would have carried is not in the log."""
FOLLOWER: Final = "follower"
REFUSED: Final = "refused-transaction"
"""A transactional produce refused as a whole (error 53 everywhere) is not charged."""
OTHER_API: Final = "other-api"
UNREADABLE: Final = "unreadable"

COLUMNS: Final = ("status", "broker", "kind", "user", "client_id", "ts_us", "records", "overhead", "throttled", "tie", "detail")
"""``ts_us``: charge time, microseconds since 1970, UTC. ``records`` + ``overhead``: charged bytes. ``throttled``: as recorded.
``tie``: orders requests of one microsecond by content, so that no partitioning or file layout changes a result."""
IDENTITY_COLUMNS: Final = ("connection", "correlation_id", "recorded_throttle_ms")
"""What tells requests apart; it makes rows large."""

_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53

_PARTITION: Final = "abortedTransactions array<struct<producerId: bigint>>"
_SCHEMA: Final = f"""
requestHeader struct<requestApiKey: int, requestApiVersion: int, correlationId: int, clientId: string>,
request struct<
  transactionalId: string,
  topicData: array<struct<name: string, partitionData: array<struct<recordsSizeInBytes: bigint>>>>,
  replicaId: int, replicaState: struct<replicaId: int>>,
response struct<
  responses: array<struct<
    topic: string,
    partitions: array<struct<{_PARTITION}, recordsSizeInBytes: bigint>>,
    partitionResponses: array<struct<errorCode: int, {_PARTITION}, recordSetSizeInBytes: bigint>>>>>,
connection string, principal string, throttleTimeMs double, responseQueueTimeMs double, sendTimeMs double
"""

_TO_THE_END: Final = 2**31 - 1
_DATE: Final = r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,6})\d*)? ?(?:([+-]\d{2}):?(\d{2})|(Z))?"


def read_request_logs(
    spark: SparkSession, logs: Sequence[BrokerFiles], *, log_timezone: str = "UTC", also: Sequence[str] = ()
) -> DataFrame:
    """Rows of all brokers' logs, in no order. ``log_timezone`` is that of lines whose time has no offset.

    ``also``: further columns, of ``IDENTITY_COLUMNS`` and ``file`` (its address, as Spark writes it).

    Raises ``UsageError`` for an unknown time zone.
    """
    zone = _checked_zone(log_timezone)
    frames = [
        spark.read.text([_literal_path(f) for f in log.files])
        .select("value", F.col("_metadata.file_path").alias("file"))
        .withColumn("broker", F.lit(log.broker))
        for log in logs
    ]
    lines = frames[0]
    for frame in frames[1:]:
        lines = lines.unionAll(frame)
    return _rows(lines, zone, also)


def _checked_zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise UsageError(f"--log-timezone {name}: no such time zone; write a name such as UTC or Europe/Berlin") from error
    return name


def _literal_path(path: str) -> str:
    # Spark takes paths as glob patterns.
    return "".join(f"\\{c}" if c in "\\[]{}*?" else c for c in path)


def _rows(lines: DataFrame, zone: str, also: Sequence[str]) -> DataFrame:
    head = F.substring_index("value", MARKER, 1)
    # Cut by bytes: counting the characters of every line would cost half as much as reading its JSON.
    text = F.col("value").cast("binary").substr(F.octet_length(head) + len(MARKER) + 1, F.lit(_TO_THE_END)).cast("string")
    marked = lines.where(F.col("value").contains(MARKER)).select(
        "broker", "file", "value", head.alias("head"), text.alias("json")
    )
    # An unescaped quote cannot be part of a name, so these tests see only the document's own fields.
    api_known = F.col("json").contains('"requestApiKey":')
    ours = F.lit(False)
    for api, following in itertools.product((_PRODUCE, _FETCH), ",}"):
        ours |= F.col("json").contains(f'"requestApiKey":{api}{following}')
    # An acks=0 answer is an empty string where all others are objects.
    document = F.replace(F.col("json"), F.lit('"response":""'), F.lit('"response":null'))
    parsed = marked.select(
        "broker",
        "file",
        "value",
        (api_known & ~ours).alias("other"),
        _line_micros(F.col("head"), zone).alias("line_us"),
        F.when(ours, F.from_json(document, _SCHEMA)).alias("d"),
    )
    return _charged(parsed, also)


def _line_micros(head: Column, zone: str) -> Column:
    day, clock, fraction, hours, minutes, zulu = (F.regexp_extract(head, _DATE, group) for group in range(1, 7))
    offset = (
        F.when(hours != "", F.concat(hours, F.lit(":"), minutes)).when(zulu != "", F.lit("+00:00")).otherwise(F.lit(f" {zone}"))
    )
    text = F.concat(day, F.lit(" "), clock, F.lit("."), F.rpad(fraction, 6, "0"), offset)
    return F.unix_micros(text.try_cast("timestamp"))


def _charged(parsed: DataFrame, also: Sequence[str]) -> DataFrame:
    header, request, response = F.col("d.requestHeader"), F.col("d.request"), F.col("d.response")
    version, api = header["requestApiVersion"], header["requestApiKey"]
    client_id = F.coalesce(header["clientId"], F.lit(""))
    connection, principal = F.col("d.connection"), F.col("d.principal")
    produce = api == _PRODUCE
    # The line's time is cut to whole milliseconds: half of one is the best guess for the rest.
    waited = F.round((F.col("d.responseQueueTimeMs") + F.col("d.sendTimeMs")) * 1000).cast("long")
    charged_at = F.col("line_us") + F.lit(500) - waited
    overhead = F.when(produce, produce_overhead(version, client_id, request)).otherwise(fetch_overhead(version, response))
    records = F.when(produce, produce_records(request)).otherwise(fetch_records(response))
    status = _status(api, version, request, response, charged_at)
    columns = {
        "status": status,
        "broker": F.col("broker"),
        "kind": F.when(produce, F.lit(Kind.PRODUCE.value)).otherwise(F.lit(Kind.FETCH.value)),
        "user": principal.substr(F.instr(principal, ":") + 1, F.length(principal)),
        "client_id": client_id,
        "ts_us": charged_at,
        "records": records,
        "overhead": overhead,
        "throttled": F.coalesce(F.col("d.throttleTimeMs"), F.lit(0.0)) > 0,
        "tie": F.xxhash64(connection, header["correlationId"]),
        "detail": F.when(status == UNREADABLE, F.concat_ws(": ", "file", F.substring("value", 1, 200))),
    }
    further = {
        "connection": connection,
        "correlation_id": header["correlationId"],
        "recorded_throttle_ms": F.coalesce(F.col("d.throttleTimeMs"), F.lit(0.0)).cast("long"),
        "file": F.col("file"),
    }
    columns |= {name: further[name] for name in also}
    return parsed.select(*(column.alias(name) for name, column in columns.items()))


def _status(api: Column, version: Column, request: Column, response: Column, charged_at: Column) -> Column:
    complete = (
        charged_at.isNotNull()
        & version.isNotNull()
        & (F.instr("d.principal", ":") > 0)
        & F.col("d.connection").isNotNull()
        & F.when(api == _PRODUCE, request["topicData"].isNotNull()).otherwise(response["responses"].isNotNull())
    )
    replica = F.coalesce(request["replicaId"], request["replicaState"]["replicaId"], F.lit(-1))
    empty = F.array_size(response["responses"]) == 0
    codes = F.flatten(F.transform(response["responses"], lambda t: t["partitionResponses"]["errorCode"]))
    refused = (
        request["transactionalId"].isNotNull()
        & (F.array_size(codes) > 0)
        & F.forall(codes, lambda code: code == _TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    )
    return (
        F.when(F.col("other"), F.lit(OTHER_API))
        .when(~F.coalesce(complete, F.lit(False)), F.lit(UNREADABLE))
        .when((api == _PRODUCE) & F.coalesce(refused, F.lit(False)), F.lit(REFUSED))
        .when((api == _FETCH) & (replica >= 0), F.lit(FOLLOWER))
        .when((api == _FETCH) & empty & (F.col("d.throttleTimeMs") > 0), F.lit(EMPTY_THROTTLED))
        .otherwise(F.lit(CHARGED))
    )
