"""Whether recorded traffic is of one cluster: some answers that brokers log hold the id of theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from reconciler.errors import TrafficError
from reconciler.model import escaped

CLUSTER: Final = "cluster"
"""The column: the id, on the few lines that say it."""
_SAYING: Final = frozenset((3, 60, 62))
"""Metadata, DescribeCluster, BrokerRegistration."""
NAMED_BROKERS: Final = "named_brokers"
"""The column: ids with commas between them, rising, on lines whose answer lists the brokers of the cluster."""
_LISTING: Final = frozenset((3, 60))
_BROKERS: Final = b'"brokers":['
_decoder: Final = json.JSONDecoder()
_FIELD: Final = b'"clusterId":"'


def cluster_id(api: int | None, raw: bytes) -> str | None:
    """The id that a line names, else ``None``."""
    if api not in _SAYING:
        return None
    begin = raw.rfind(_FIELD)
    end = raw.find(b'"', begin + len(_FIELD))
    return raw[begin + len(_FIELD) : end].decode("utf-8", "replace") if 0 <= begin < end else None


def named_brokers(api: int | None, raw: bytes) -> str | None:
    """The brokers that a line's answer lists, else ``None``."""
    if api not in _LISTING:
        return None
    begin = raw.rfind(_BROKERS)
    try:
        listed, _ = _decoder.raw_decode(raw[begin + len(_BROKERS) - 1 :].decode("utf-8", "replace")) if begin >= 0 else ([], 0)
    except (ValueError, RecursionError):
        return None
    ids = (one.get("nodeId", one.get("brokerId")) for one in listed if isinstance(one, dict))
    found = sorted({number for number in ids if isinstance(number, int)})
    return ",".join(map(str, found)) or None


def require_one(clusters: Mapping[str, str]) -> None:
    """Raise ``TrafficError`` for more than one cluster's id; each with what is of it."""
    if len(clusters) < 2:
        return
    said = ", ".join(f"{escaped(name)} ({whose})" for name, whose in sorted(clusters.items()))
    raise TrafficError(f"recorded traffic is of {len(clusters)} clusters, {said}: give --traffic of one cluster at a time")
