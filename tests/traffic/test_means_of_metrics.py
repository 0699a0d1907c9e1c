"""Means and gauges of metrics as ``--traffic``: a mean above a limit proves a throttle, and none clears a change."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from reconciler.formats.schema_files import load_schema
from tests.support.command import Command, Done, invoke

MAPPING = """
apiVersion: kafka-quotas/v1
kind: TrafficMapping
metadata: {name: metrics}
spec:
  semantics: %s
  columns:
    ts: {column: at, unit: s}
    interval: {constant: %d}
    broker: {column: broker}
    user: {column: user}
    client_id: {column: client, missing: empty}
    kind: {constant: produce}
    amount: {column: amount}
"""
QUOTAS = """
apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: prod}
spec: {prune: never}
---
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: q}
spec:
  quotas:
    - match: {user: busy}
      quotas: {producer_byte_rate: 1000}
    - match: {user: calm}
      quotas: {producer_byte_rate: 1000}
"""
MINUTE = 1_763_900_000 // 60 * 60
# 60 s and the longest window of 12 s: a limit of 1,000 a second is proven to throttle from 72,000 on.
DELTAS = [(MINUTE, 1, "busy", "", 30_000), (MINUTE + 60, 1, "busy", "", 72_100), (MINUTE, 1, "calm", "", 71_000)]
GAUGES = [(MINUTE, 1, "busy", "", 1_201), (MINUTE + 60, 1, "busy", "", 10), (MINUTE, 1, "calm", "", 1_199)]


def backtest(command: Command, folder: Path, semantics: str, rows: list[tuple[int, int, str, str, int]], *more: str) -> Done:
    (folder / "quotas").mkdir()
    (folder / "quotas" / "q.yaml").write_text(QUOTAS.lstrip("\n"), encoding="utf-8")
    (folder / "mapping.yaml").write_text((MAPPING % (semantics, 60)).lstrip("\n"), encoding="utf-8")
    lines = ["at,broker,user,client,amount", *(",".join(map(str, row)) for row in rows), ""]
    (folder / "metrics.csv").write_text("\n".join(lines), encoding="utf-8")
    return command("backtest", "quotas", "--traffic", "metrics.csv", "--mapping", "mapping.yaml", *more, cwd=folder)


@pytest.mark.spark
@pytest.mark.parametrize("where", [(), ("--master", "local[2]")], ids=["here", "spark"])
@pytest.mark.parametrize(("semantics", "rows"), [("delta", DELTAS), ("gauge", GAUGES)])
def test_a_mean_above_the_limit_is_certain_and_one_below_is_inconclusive(
    tmp_path: Path, semantics: str, rows: list[tuple[int, int, str, str, int]], where: tuple[str, ...], warm_command: Command
) -> None:
    done = backtest(warm_command, tmp_path, semantics, rows, "--format", "json", *where)
    assert (done.code, done.err) == (0, "")
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    found = {one["bucket"]["user"]: one for one in document["verdicts"]}
    assert (found["busy"]["verdict"], found["busy"]["reason"]) == ("throttled", "a recorded mean is above the limit")
    assert found["busy"]["peak_bound"] == "lower"
    assert 1000 < found["busy"]["peak"] < 1002
    assert (found["calm"]["verdict"], found["calm"]["recommended"]) == ("inconclusive", None)
    assert document["unjudged"] == []
    assert document["summary"]["headline"] == "The proposed quotas would have throttled 1 of 2 quota groups whose limit changes."
    messages = [one["message"] for one in document["findings"] if one["id"] == "would-throttle"]
    assert len(messages) == 1
    assert "a recorded mean proves a rate of at least" in messages[0]


def test_the_text_names_the_proof_and_clears_nothing(tmp_path: Path) -> None:
    done = backtest(invoke, tmp_path, "delta", DELTAS, "--details")
    assert (done.code, done.err) == (0, "")
    assert "throttled     user busy: producer_byte_rate  1000 B/s  at least 1001 B/s" in done.out
    assert "why          a recorded mean is above the limit" in done.out
    assert "at least once; a mean does not show how often" in done.out
    assert "inconclusive  user calm: producer_byte_rate  1000 B/s  at least 986 B/s" in done.out
    assert "no client in this history" not in done.out
    assert "loose" not in done.out
    assert "which can prove throttling and never its absence" in done.out
    assert "clear " not in done.out


def test_a_change_of_a_client_without_any_mean_is_not_judged(tmp_path: Path) -> None:
    done = backtest(invoke, tmp_path, "delta", DELTAS[2:], "--format", "json")
    assert json.loads(done.out)["summary"]["headline"] == (
        "The history does not show enough to clear 1 of 1 quota group whose limit changes. "
        "Not judged: 1 changed quota that limits no recorded traffic. Its effect is not known."
    )
