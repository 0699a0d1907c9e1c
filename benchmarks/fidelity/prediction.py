"""What the product says of a recording, asked as a user would: ``kafka-quotas backtest`` in a process of its own."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """One line of ``--requests``: times in milliseconds since 1970, throttles in milliseconds; no ``limit``: unlimited."""

    number: int
    connection: str
    key: str
    broker: int
    user: str
    client_id: str
    at_ms: float
    amount: float
    limit: float | None
    throttle_ms: int
    recorded_ms: int


def predict(logs: Mapping[int, Path], manifests: Path, kafka_version: str) -> list[Predicted]:
    """Every request of a recording under the manifests' quotas."""
    requests = manifests / "requests.jsonl"
    _backtest(logs, manifests, kafka_version, "--requests", str(requests))
    with requests.open(encoding="utf-8") as lines:
        return [_predicted(json.loads(line)) for line in lines]


def verdicts(logs: Mapping[int, Path], manifests: Path, kafka_version: str) -> list[dict[str, Any]]:
    """The verdicts of the backtest that judges by whole seconds."""
    return list(_backtest(logs, manifests, kafka_version)["verdicts"])


def _backtest(logs: Mapping[int, Path], manifests: Path, kafka_version: str, *options: str) -> dict[str, Any]:
    traffic = [part for broker, path in sorted(logs.items()) for part in ("--traffic", f"{broker}={path}")]
    command = [
        sys.executable, "-m", "reconciler", "backtest", str(manifests), *traffic, "--kafka-version", kafka_version,
        "--master", "local[2]", "--format", "json", *options,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # 1 also says that a finding is bad enough to stop a pull request, which these are meant to be.
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        raise SystemExit(f"backtest ended with {done.returncode}: {done.stderr[-3000:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    unreadable = document["provenance"]["unreadable"]["lines"]
    if unreadable:
        raise SystemExit(f"backtest could not read {unreadable} lines of {', '.join(traffic[1::2])}")
    return document


def _predicted(row: Mapping[str, Any]) -> Predicted:
    return Predicted(
        number=row["correlation_id"],
        connection=row["connection"],
        key=row["key"],
        broker=int(row["broker"]),
        user=row["user"],
        client_id=row["client_id"],
        at_ms=datetime.datetime.fromisoformat(row["ts"]).timestamp() * 1000,
        amount=row["amount"],
        limit=row["limit"],
        throttle_ms=row["throttle_ms"],
        recorded_ms=row["recorded_throttle_ms"],
    )
