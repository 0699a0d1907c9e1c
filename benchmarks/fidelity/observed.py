"""What brokers really did, from their own request logs: read here with nothing of the product."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fidelity.recording import is_ours

_MARKER = "Completed request:"
_KINDS = {0: "produce", 1: "fetch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One scripted request: when it was charged (ms since 1970), and the throttle that its line tells (ms)."""

    number: int
    kind: str
    at_ms: float
    throttle_ms: int
    local_ms: float
    """Time in the handler's thread."""


def observed(logs: Mapping[int, Path]) -> dict[int, Observed]:
    """By number. Raises ``SystemExit`` when a request was refused: then the runs cannot be compared."""
    return {one.number: one for path in logs.values() for one in _read(path)}


def _read(path: Path) -> Iterable[Observed]:
    with path.open("rb") as lines:
        for line in lines:
            if is_ours(line):
                yield of_line(line.decode())


def of_line(line: str) -> Observed:
    """One line of the request log with the layout that Kafka ships, in UTC."""
    head, _, rest = line.partition(_MARKER)
    document: dict[str, Any] = json.JSONDecoder().raw_decode(rest)[0]
    _require_served(document)
    logged = datetime.datetime.strptime(head[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=datetime.UTC)
    header = document["requestHeader"]
    return Observed(
        number=header["correlationId"],
        kind=_KINDS[header["requestApiKey"]],
        at_ms=logged.timestamp() * 1000 - document["responseQueueTimeMs"] - document["sendTimeMs"],
        throttle_ms=int(document["throttleTimeMs"]),
        local_ms=document["localTimeMs"],
    )


def _require_served(document: Mapping[str, Any]) -> None:
    answer = document["response"] or {"responses": []}
    for topic in answer["responses"]:
        for part in topic.get("partitionResponses") or topic.get("partitions") or ():
            if part.get("errorCode"):
                raise SystemExit(f"a request was refused with error {part['errorCode']}: {document['requestHeader']}")
