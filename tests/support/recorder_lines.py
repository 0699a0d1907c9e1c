"""Files as the recorder writes them, made in Python."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Sums: TypeAlias = Mapping[tuple[str, str | None, str | None], Mapping[int, int]]
"""By kind, user and client id: amounts by second since 1970."""


def header(broker: int = 1, *, cluster: str | None = "abc", version: int = 1) -> dict[str, Any]:
    """The first line."""
    return {"format": "kafka-quotas-recorder", "version": version, "broker": broker, "cluster": cluster, "started_ms": 1}


def write_members(path: Path, *members: Sequence[Any]) -> Path:
    """Each member's lines compressed on their own, as the recorder appends them; text and bytes stay as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = ("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in member) for member in members)
    path.write_bytes(b"".join(gzip.compress(text.encode()) for text in texts))
    return path


def write_sums(path: Path, sums: Sums, *, broker: int = 1, cluster: str | None = "abc") -> Path:
    """A file with these sums, a line for each second from the first to the last."""
    clients = list(sums)
    names = [["c", number, *client] for number, client in enumerate(clients)]
    seconds = sorted({second for amounts in sums.values() for second in amounts})
    lines = [["s", second, _pairs(clients, sums, second)] for second in range(seconds[0], seconds[-1] + 1)]
    return write_members(path, [header(broker, cluster=cluster), *names], lines)


def _pairs(clients: Iterable[tuple[str, str | None, str | None]], sums: Sums, second: int) -> list[int]:
    there = [(number, sums[client][second]) for number, client in enumerate(clients) if second in sums[client]]
    return [value for pair in there for value in pair]
