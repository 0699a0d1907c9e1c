"""The time of request threads that a broker charges for a request, as far as its log line tells.

Kafka charges what its handler threads spend on a request, which the line gives as ``localTimeMs`` in whole microseconds, cut; and
what its network threads spend, which no line gives. Exempt are followers' fetches, produce without acknowledgement, and what
brokers and controllers say to each other: those calls of ``sendResponseExemptThrottle`` that ``KafkaApis`` and ``ControllerApis``
of 2.8.2, 3.9.2 and 4.3.1 hold.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

_BETWEEN_BROKERS: Final = (4, 5, 6, 7, 27, 52, 53, 54, 56, 59, 82)
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, WriteTxnMarkers, Vote, BeginQuorumEpoch, EndQuorumEpoch,
AlterPartition, FetchSnapshot, UpdateRaftVoter."""
_OF_THE_QUORUM: Final = (55, 80, 81)
"""DescribeQuorum, AddRaftVoter, RemoveRaftVoter: exempt on the controller, charged on the broker that passes them on."""
_NANOS: Final = 1_000


def thread_nanos(local_ms: Column) -> Column:
    """Nanoseconds: int64; a lower bound."""
    return F.round(local_ms * 1000).cast("long") * _NANOS


def is_exempt_api(api: Column, forwarded: Column) -> Column:
    """Whether requests of this kind are never charged; ``forwarded``: another broker passed it on."""
    return api.isin(*_BETWEEN_BROKERS) | (api.isin(*_OF_THE_QUORUM) & forwarded)
