"""Whether recorded traffic is of one cluster: some answers that brokers log hold the id of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciler.errors import TrafficError
from reconciler.model.entity import escaped

CLUSTER: Final = "cluster"
"""The column: the id, on the few lines that say it."""
_SAYING: Final = (3, 60, 62)
"""Metadata, DescribeCluster, BrokerRegistration."""
_FIELD: Final = '"clusterId":"'


def cluster_id(api: Column, line: Column) -> Column:
    """The id that a line holds, else null."""
    said = F.substring_index(F.substring_index(line, _FIELD, -1), '"', 1)
    return F.when(api.isin(*_SAYING) & line.contains(_FIELD), said)


def require_one_cluster(rows: DataFrame) -> None:
    """Raise ``TrafficError`` when rows with the column ``CLUSTER`` are of several."""
    found = rows.where(F.col(CLUSTER).isNotNull()).select("broker", CLUSTER).distinct().orderBy("broker", CLUSTER).collect()
    brokers: dict[str, list[str]] = {}
    for row in found:
        brokers.setdefault(row[CLUSTER], []).append(str(row.broker))
    require_one({name: f"broker {' and '.join(ids)}" for name, ids in brokers.items()})


def require_one(clusters: Mapping[str, str]) -> None:
    """Raise ``TrafficError`` for more than one cluster's id; each with what is of it."""
    if len(clusters) < 2:
        return
    said = ", ".join(f"{escaped(name)} ({whose})" for name, whose in sorted(clusters.items()))
    raise TrafficError(f"recorded traffic is of {len(clusters)} clusters, {said}: give --traffic of one cluster at a time")
