"""The JSON document of a request log line, read as far as its kind of request is needed.

Reading JSON is what costs, and most of it is in what nobody asks for. So each kind of request has a schema of its own; and of
requests of which only the time counts, whose answers can be long, request and answer are cut off before. An unescaped quote
cannot be part of a name, so a text such as ``,"request":`` is always the document's own. Spark looks for a text slowly, at every
byte: a search through a whole line costs about as much as parsing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from reconciler.traffic.sources import mutations

MARKER: Final = "Completed request:"
PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78
"""API keys."""

_TO_THE_END: Final = 2**31 - 1
_REQUEST, _CONNECTION = ',"request":', ',"connection":'

_COMMON: Final = """
isForwarded boolean, requestHeader struct<requestApiVersion: int, correlationId: int, clientId: string>,
connection string, principal string, throttleTimeMs double, responseQueueTimeMs double, sendTimeMs double, localTimeMs double,
remoteTimeMs double
"""
_PRODUCED: Final = (
    f"{_COMMON}, request struct<acks: int, transactionalId: string, "
    "topicData: array<struct<name: string, partitionData: array<struct<recordsSizeInBytes: bigint>>>>>"
)
_FETCHED: Final = (
    f"{_COMMON}, request struct<replicaId: int, replicaState: struct<replicaId: int>>, "
    "response struct<responses: array<struct<topic: string, "
    "partitions: array<struct<abortedTransactions: array<struct<producerId: bigint>>, recordsSizeInBytes: bigint>>>>>"
)
_MUTATED: Final = f"{_COMMON}, request {mutations.REQUEST}, response {mutations.RESPONSE}"
_ERROR_CODES: Final = "response struct<responses: array<struct<partitionResponses: array<struct<errorCode: int>>>>>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The columns in which a line's document is; of the four structs one is not null, by the request's API key."""

    produce: Column
    fetch: Column
    mutation: Column
    other: Column

    def common(self, name: str) -> Column:
        """A field that all have."""
        parts = (self.produce, self.fetch, self.mutation, self.other)
        return F.coalesce(*(part[name] for part in parts))

    def header(self, name: str) -> Column:
        """A field of the request's header."""
        parts = (self.produce, self.fetch, self.mutation, self.other)
        return F.coalesce(*(part["requestHeader"][name] for part in parts))


def head_of(line: Column) -> Column:
    """What is before the message."""
    return F.substring_index(line, MARKER, 1)


def json_of(line: Column) -> Column:
    """What is behind the first marker of a line; a name may hold another one."""
    # Cut by bytes: counting the characters of every line would cost half as much as reading its JSON.
    start = F.octet_length(head_of(line)) + len(MARKER) + 1
    return line.cast("binary").substr(start, F.lit(_TO_THE_END)).cast("string")


def api_of(json: Column) -> Column:
    """The request's API key: int32; null when there is none."""
    behind = F.substring_index(F.substring_index(json, _REQUEST, 1), '"requestApiKey":', -1)
    return F.substring_index(F.substring_index(behind, ",", 1), "}", 1).try_cast("int")


def produce_document(json: Column) -> Column:
    """Who sent how much."""
    return F.from_json(json, _PRODUCED)


def fetch_document(json: Column) -> Column:
    """Who got how much."""
    return F.from_json(json, _FETCHED)


def is_fetch_of_2_8(document: Column) -> Column:
    """Whether partitions were answered that ``fetch_document`` does not find."""
    return F.get(document["response"]["responses"], F.lit(0)).isNotNull() & (
        F.get(document["response"]["responses"], F.lit(0))["partitions"].isNull()
    )


def fetch_document_of_2_8(json: Column) -> Column:
    """The same from a broker that has other names for the partitions and their sizes."""
    partitions = F.replace(json, F.lit('"partitionResponses":'), F.lit('"partitions":'))
    return fetch_document(F.replace(partitions, F.lit('"recordSetSizeInBytes":'), F.lit('"recordsSizeInBytes":')))


def mutation_document(json: Column) -> Column:
    """Of the requests that ``mutations`` reads."""
    return F.from_json(json, _MUTATED)


def other_document(json: Column) -> Column:
    """Who asked, and how long it took."""
    return F.from_json(_without(json, _REQUEST), _COMMON)


def produce_error_codes(json: Column) -> Column:
    """The error codes of all partitions of a produce answer, which is an empty text without acknowledgement."""
    codes = F.from_json(F.replace(json, F.lit('"response":""'), F.lit('"response":null')), _ERROR_CODES)
    return F.flatten(F.transform(codes["response"]["responses"], lambda topic: topic["partitionResponses"]["errorCode"]))


def _without(json: Column, begin: str) -> Column:
    """The document without what is between the field ``begin`` and the connection."""
    cut = F.concat(F.substring_index(json, begin, 1), F.lit(_CONNECTION), F.substring_index(json, _CONNECTION, -1))
    # Not shorter: a field is missing, or they come in an order that is not the broker's.
    return F.when(F.octet_length(cut) < F.octet_length(json), cut).otherwise(json)
