"""Gauges of metrics as ``--traffic``: they prove a throttle or make one possible, and none clears a change."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from reconciler.formats.shapes import load_schema
from tests.support.command import Command, Done, invoke
from tests.support.manifests import cluster, quotas

MAPPING = """
apiVersion: kafka-quotas/v1
kind: TrafficMapping
metadata: {name: metrics}
spec:
  semantics: gauge
  columns:
    ts: {column: at, unit: s}
    interval: {constant: %d}
    broker: {column: broker}
    user: {column: user}
    client_id: {constant: ""}
    kind: {constant: produce}
    amount: {column: amount}
"""
LIMITS = [({"user": name}, {"producer_byte_rate": 1000}) for name in ("busy", "calm", "idle")]
QUOTAS = cluster(prune="never") + "---\n" + quotas(*LIMITS)
MINUTE = 1_763_900_000 // 60 * 60
GAUGES = [
    (MINUTE, 1, "busy", "", 1_201), (MINUTE + 60, 1, "busy", "", 10), (MINUTE, 1, "calm", "", 1_199),
    (MINUTE, 1, "idle", "", 200),
]  # fmt: skip


def backtest(command: Command, folder: Path, rows: list[tuple[int, int, str, str, int]], *more: str, seconds: int = 60) -> Done:
    (folder / "quotas").mkdir()
    (folder / "quotas" / "q.yaml").write_text(QUOTAS, encoding="utf-8")
    (folder / "mapping.yaml").write_text((MAPPING % seconds).lstrip("\n"), encoding="utf-8")
    lines = ["at,broker,user,client,amount", *(",".join(map(str, row)) for row in rows), ""]
    (folder / "metrics.csv").write_text("\n".join(lines), encoding="utf-8")
    return command("backtest", "quotas", "--traffic", "metrics.csv", "--mapping", "mapping.yaml", *more, cwd=folder)


@pytest.mark.spark
@pytest.mark.parametrize("where", [(), ("--master", "local[2]")], ids=["here", "spark"])
def test_a_sample_far_above_the_limit_is_certain_and_one_below_is_inconclusive(
    tmp_path: Path, where: tuple[str, ...], warm_command: Command
) -> None:
    done = backtest(warm_command, tmp_path, GAUGES, "--format", "json", *where)
    assert (done.code, done.err) == (0, "")
    document = done.json()
    jsonschema.Draft202012Validator(load_schema("backtest")).validate(document)
    found = {one["bucket"]["user"]: one for one in document["verdicts"]}
    proof = "a recorded sample of the broker's own rate proves a throttle"
    assert (found["busy"]["verdict"], found["busy"]["reason"]) == ("throttled", proof)
    assert found["busy"]["peak_bound"] == "lower"
    assert 1000 < found["busy"]["peak"] < 1002
    # Above the limit, and by less than what proves a throttle.
    assert found["calm"]["verdict"] == "possible"
    assert (found["calm"]["safe"], found["idle"]["verdict"], found["idle"]["safe"]) == (None, "inconclusive", None)
    assert [(one["semantics"], one["rows"], one["series"], one["every_s"]) for one in document["provenance"]["observations"]] == [
        ("gauge", 4, 3, 60)
    ]
    assert document["provenance"]["not_charged"] == {"gauge": 4}
    assert document["unjudged"] == []
    assert document["summary"]["headline"] == (
        "The proposed quotas would have throttled 1 of 3 quota groups whose limit changes. "
        "Inconclusive: 1 of 3 changed quotas (too little recorded traffic)."
    )
    messages = {one["id"]: one["message"] for one in document["findings"]}
    assert "a recorded sample of the broker's own rate proves a throttle. The highest sample is" in messages["would-throttle"]
    assert "against a limit of 1000 B/s" in messages["may-throttle"]


def test_the_text_of_gauges_has_samples_their_interval_and_a_recommendation_with_its_margin(tmp_path: Path) -> None:
    rows = [(MINUTE + 30 * number, 1, "busy", "", 1_201 if number == 7 else 10) for number in range(400)]
    rows += [(MINUTE + 30 * number, 1, "calm", "", 800 if number == 7 else 10) for number in range(400)]
    rows += [(MINUTE + 30 * number, 1, "idle", "", 100) for number in range(400)]
    done = backtest(invoke, tmp_path, rows, "--details", seconds=30)
    assert (done.code, done.err) == (0, "")
    assert (
        "samples             1 of 400 samples above the limit (0.25 %, 95 % interval 0.044 % to 1.4 %), 11/30 of all moments; "
        "highest sample 1.173 KiB/s" in done.out
    )
    assert (
        "advice              16KiB: highest sample 1.173 KiB/s x 2.9 for 30 s gauges, and 50 % because the history is 3 h"
        in done.out
    )
    assert "possible      user calm" in done.out, "800 B/s x 2.9 is above the limit"
    assert "why                 the highest sample, with the margin for what samples miss, is above the limit" in done.out
    assert "inconclusive  user idle" in done.out
    assert "not seen in 400 samples, 11/30 of all moments, above the limit in at most 0.75 % of the time (95 %)" in done.out
    assert "1,200 gauges every 30 s of 3 series" in done.out


def test_a_change_of_a_client_without_any_sample_is_not_judged(tmp_path: Path) -> None:
    done = backtest(invoke, tmp_path, GAUGES[3:], "--format", "json")
    assert [one["reason"] for one in json.loads(done.out)["unjudged"]] == ["no-recorded-client"] * 2
    assert json.loads(done.out)["summary"]["headline"] == (
        "The history does not show enough to clear 1 of 1 quota group whose limit changes. "
        "Not checked: 2 of 3 changed quotas (no recorded traffic). "
        "Inconclusive: 1 of 3 changed quotas (too little recorded traffic)."
    )
