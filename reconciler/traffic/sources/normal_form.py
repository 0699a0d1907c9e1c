"""The normal form: one row an observation, whatever it was read from, as Parquet.

``kind``, ``amount`` and the identity say what was charged to whom; ``semantics`` says whether a row is a single request
(``event``), a difference of counters (``delta``) or a sampled rate (``gauge``). Only events can be judged request by request. A
null ``user`` or ``client_id`` is not known; an empty one is really empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from reconciler.errors import TrafficError
from reconciler.traffic.kinds import Kind
from reconciler.traffic.sources.readable import END_US, FIRST_US, MOST_AMOUNT
from reconciler.traffic.sources.statuses import CHARGED, UNCLEAR_TIME, UNREADABLE

COLUMNS: Final = (
    ("ts", "timestamp"), ("interval_ms", "int"), ("broker", "int"), ("user", "string"), ("client_id", "string"),
    ("kind", "string"), ("amount", "bigint"), ("semantics", "string"), ("throttled", "boolean"), ("overhead", "bigint"),
    ("tie", "bigint"), ("ip", "string"), ("strict", "boolean"), ("part", "int"),
)  # fmt: skip
"""``ts``: the charge time, or the end of the interval; UTC, microseconds. ``amount``: bytes (produce, fetch), nanoseconds of a
thread (request), partitions (mutation), connections (connection). ``overhead``: the part of ``amount`` that is no records, which
a fetch quota does not cut. ``tie``: orders requests of one microsecond.

A mutation has one row for each topic of its request: the same ``ts`` and ``tie``, and ``part`` counts the topics from 0 in the
order of the request; ``strict`` says whether its API version is refused topics (CreateTopics from 6, CreatePartitions from 3,
DeleteTopics from 5; null: it is) or only delayed. A connection has an ``ip``, and neither user nor client id. From ``throttled``
on, columns may be missing or null."""
_REQUIRED: Final = tuple(name for name, _ in COLUMNS[:8])
EVENT: Final = "event"
"""The semantics of a single request."""

UNCLEAR: Final = "unclear local time"
"""A flag that a reader may add; no file has a column of this name."""

UNKNOWN_IDENTITY: Final = "unknown-identity"
NOT_AN_EVENT: Final = "not-an-event"


def to_normal_form(rows: DataFrame) -> DataFrame:
    """Charged rows of ``request_log`` as the normal form."""
    charged = rows.where(F.col("status") == CHARGED)
    of_client = F.col("kind") != Kind.CONNECTION.value
    columns = {
        "ts": F.timestamp_micros("ts_us"),
        "interval_ms": F.lit(0),
        "broker": F.col("broker"),
        "user": F.when(of_client, F.col("user")),
        "client_id": F.when(of_client, F.col("client_id")),
        "kind": F.col("kind"),
        "amount": F.col("records") + F.col("overhead"),
        "semantics": F.lit(EVENT),
        "throttled": F.col("throttled"),
        "overhead": F.col("overhead"),
        "tie": F.col("tie"),
        "ip": F.when(~of_client, F.col("client_id")),
        "strict": _optional("strict", "boolean", set(rows.columns)),
        "part": _optional("part", "int", set(rows.columns)),
    }
    return charged.select(*(columns[name].cast(kind).alias(name) for name, kind in COLUMNS))


def read_normal_form(spark: SparkSession, paths: list[str], *, also: Sequence[str] = ()) -> DataFrame:
    """Rows as ``request_log`` has them, with ``strict`` and ``part``; ``also``: ``file``, the address of each row's file.

    The client id of a connection is its address: whoever has ``ip`` has neither user nor client id.

    Raises ``TrafficError`` when a column is missing or of another type.
    """
    found = spark.read.option("mergeSchema", "true").parquet(*paths)
    return from_normal_form(found.withColumn("file", F.col("_metadata.file_path")) if "file" in also else found, also=also)


def from_normal_form(found: DataFrame, *, also: Sequence[str] = ()) -> DataFrame:
    """The inverse of ``to_normal_form``; rows that are no request, or of nobody known, keep that as their status."""
    _require_columns(found.schema)
    known = {field.name for field in found.schema}
    amount = F.col("amount")
    overhead = F.coalesce(_optional("overhead", "bigint", known), F.lit(0).cast("bigint"))
    overhead = F.greatest(F.lit(0).cast("bigint"), F.least(overhead, amount))
    user, client_id = F.col("user"), F.col("client_id")
    of_address = F.col("kind") == Kind.CONNECTION.value
    if "ip" in known:
        user, client_id = F.when(of_address, F.lit("")).otherwise(user), F.when(of_address, F.col("ip")).otherwise(client_id)
    # A client of whom a name is not known may still be judged; of an address there is nothing else to know.
    identity = ~of_address | client_id.isNotNull() if "ip" in known else ~of_address
    ts_us, broker = F.unix_micros("ts"), F.col("broker").try_cast("int")
    timely, countable = (ts_us >= FIRST_US) & (ts_us < END_US), (amount >= 0) & (amount <= MOST_AMOUNT)
    usable = timely & countable & broker.isNotNull() & F.col("kind").isin([k.value for k in Kind])
    unclear = _optional(UNCLEAR, "boolean", known)
    status = (
        F.when(F.coalesce(unclear, F.expr("false")), F.lit(UNCLEAR_TIME))
        .when(~F.coalesce(usable, F.expr("false")), F.lit(UNREADABLE))
        .when(F.coalesce(F.col("semantics") != EVENT, F.expr("true")), F.lit(NOT_AN_EVENT))
        .when(~identity, F.lit(UNKNOWN_IDENTITY))
        .otherwise(F.lit(CHARGED))
    )
    # The topics of one request stay together.
    told_apart = F.when(F.col("part").isNull(), amount) if "part" in known else amount
    tie = F.coalesce(_optional("tie", "bigint", known), F.xxhash64(user, client_id, "kind", told_apart))
    return found.select(
        status.alias("status"),
        broker.alias("broker"),
        "kind",
        user.alias("user"),
        client_id.alias("client_id"),
        # Anything else would spoil sums and spans.
        F.when(timely, ts_us).alias("ts_us"),
        F.when(countable, amount - overhead).alias("records"),
        F.when(countable, overhead).alias("overhead"),
        F.coalesce(_optional("throttled", "boolean", known), F.expr("false")).alias("throttled"),
        tie.alias("tie"),
        F.lit(None).cast("string").alias("detail"),
        _optional("strict", "boolean", known).alias("strict"),
        _optional("part", "int", known).alias("part"),
        *also,
    )


def _optional(name: str, kind: str, known: set[str]) -> Column:
    return F.col(name).try_cast(kind) if name in known else F.lit(None).cast(kind)


def _require_columns(schema: StructType) -> None:
    types = {field.name: field.dataType.simpleString() for field in schema}
    missing = [name for name in _REQUIRED if name not in types]
    if missing:
        raise TrafficError(
            f"recorded traffic in the normal form lacks the column {missing[0]!r}; it has {', '.join(sorted(types))}"
        )
    integers = ("tinyint", "smallint", "int", "bigint")
    for name, kind in COLUMNS:
        allowed = integers if kind in ("int", "bigint") else (kind, "timestamp_ntz") if kind == "timestamp" else (kind,)
        if name in types and types[name] not in allowed:
            raise TrafficError(f"recorded traffic in the normal form: column {name!r} is {types[name]}, not {kind}")
