"""What one line of a request log is charged for, as entries: a row's own part, where the rest is the line's.

The columns are those that ``request_log`` makes of a line: ``api``, ``version``, ``client_id``, ``connection``, ``user``,
``forwarded``, ``throttle_ms``, ``local_ms``, ``answered_us``, ``unclear``, ``unusable``, ``json``, and the documents ``p``
(produce), ``f`` (fetch) and ``m`` (mutations).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.charged_size import fetch_overhead, fetch_records, produce_overhead, produce_records
from reconciler.traffic.sources.log_documents import FETCH, PRODUCE, SHARE_FETCH, produce_error_codes
from reconciler.traffic.sources.mutations import ENTRY, MUTATING, mutations
from reconciler.traffic.sources.statuses import (
    CHARGED,
    EMPTY_THROTTLED,
    EXEMPT,
    FOLLOWER,
    OTHER_API,
    REFUSED,
    UNCLEAR_TIME,
    UNREADABLE,
    UNSIZED,
)
from reconciler.traffic.sources.thread_time import is_exempt_api, thread_nanos

_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
_SINCE_4_0: Final = r":\d+-\d+-\d+$"
"""Connections of brokers from 4.0 on end with port, processor and number."""


def unusable(kinds: frozenset[Kind]) -> Column:
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


def of_bytes_entry() -> Column:
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


def entries(kinds: frozenset[Kind]) -> Column:
    """All entries of a line, as an array that is never empty."""
    api, wanted = F.col("api"), F.col("unusable").isNull()
    of_bytes = F.array(of_bytes_entry())
    time = F.lit(Kind.REQUEST.value), thread_nanos(F.col("local_ms")), F.lit(0)
    exempt = is_exempt_api(api, F.col("forwarded"))
    status = F.coalesce(F.col("unusable"), F.when(exempt, F.lit(EXEMPT)).otherwise(F.lit(CHARGED)))
    alone = F.array(_entry(status, *time, begins_line=True))
    both = F.array(of_bytes_entry(), _entry(F.lit(CHARGED), *time, begins_line=False))
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
