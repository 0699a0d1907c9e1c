"""Whether recorded traffic is of one cluster: some answers that brokers log hold the id of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.errors import TrafficError
from reconciler.model.entity import escaped

CLUSTER: Final = "cluster"
"""The column: the id, on the few lines that say it."""
_SAYING: Final = frozenset((3, 60, 62))
"""Metadata, DescribeCluster, BrokerRegistration."""
_FIELD: Final = b'"clusterId":"'


def cluster_id(api: int | None, raw: bytes) -> str | None:
    """The id that a line names, else ``None``."""
    if api not in _SAYING:
        return None
    begin = raw.rfind(_FIELD)
    end = raw.find(b'"', begin + len(_FIELD))
    return raw[begin + len(_FIELD) : end].decode("utf-8", "replace") if 0 <= begin < end else None


def require_one(clusters: Mapping[str, str]) -> None:
    """Raise ``TrafficError`` for more than one cluster's id; each with what is of it."""
    if len(clusters) < 2:
        return
    said = ", ".join(f"{escaped(name)} ({whose})" for name, whose in sorted(clusters.items()))
    raise TrafficError(f"recorded traffic is of {len(clusters)} clusters, {said}: give --traffic of one cluster at a time")
