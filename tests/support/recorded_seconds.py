"""Sums of seconds from a request log and from the recorder, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from reconciler.traffic import Reading, find_traffic
from reconciler.traffic.kinds import BYTES

Client: TypeAlias = tuple[str, str | None, str | None]
Seconds: TypeAlias = dict[int, int]
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """A charged request of a log."""

    ts_us: int
    amount: int


def logged_requests(log: Path, broker: int = 1) -> Mapping[Client, list[LoggedRequest]]:
    """The charged produce and fetch requests of each client."""
    found: dict[Client, list[LoggedRequest]] = defaultdict(list)
    for batch in find_traffic([f"{broker}={log}"]).batches(Reading()):
        for row in batch.to_pylist():
            if row["status"] == "charged" and row["records"] + row["overhead"]:
                client = row["kind"], row["user"], row["client_id"]
                found[client].append(LoggedRequest(ts_us=row["ts_us"], amount=row["records"] + row["overhead"]))
    return found


def recorded_seconds(folder: Path) -> Mapping[Client, Seconds]:
    """The recorder's sums of produced and fetched bytes by client."""
    found: dict[Client, Seconds] = defaultdict(dict)
    for batch in find_traffic([str(folder)]).batches(Reading()):
        for row in batch.to_pylist():
            if row["status"] == "charged" and row["kind"] in BYTES and row["records"]:
                found[row["kind"], row["user"], row["client_id"]][row["ts_us"] // _SECOND_US] = row["records"]
    return found


def sums_of(requests: list[LoggedRequest]) -> Seconds:
    """Their amounts by second."""
    found: Seconds = defaultdict(int)
    for request in requests:
        found[request.ts_us // _SECOND_US] += request.amount
    return dict(found)


def unexplained(requests: list[LoggedRequest], recorded: Seconds, *, within_us: int) -> dict[int, tuple[int, int, int]]:
    """Seconds at whose end the recorder's running sum is none that the log has so near that moment: least, recorded, most.

    The log has the moments of charges only nearly: on a busy machine they are off by some milliseconds.
    """
    found = {}
    seconds = {request.ts_us // _SECOND_US for request in requests} | set(recorded)
    for second in range(min(seconds), max(seconds) + 1):
        end = (second + 1) * _SECOND_US
        least, most = (sum(one.amount for one in requests if one.ts_us < end + by) for by in (-within_us, within_us))
        running = sum(amount for one, amount in recorded.items() if one <= second)
        if not least <= running <= most:
            found[second] = least, running, most
    return found
