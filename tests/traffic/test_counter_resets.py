"""A counter that starts at zero again: its negative difference is counted as unreadable, and no limit is judged by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas

pytest.importorskip("pyarrow")

START_S = 1_763_424_000
MAPPING = """\
apiVersion: kafka-quotas/v1
kind: TrafficMapping
spec:
  semantics: delta
  columns:
    ts: {column: at, unit: s}
    interval: {constant: 15}
    broker: {constant: 1}
    user: {column: user}
    client_id: {column: client, missing: empty}
    kind: {constant: produce}
    amount: {column: amount}
"""


def backtest(folder: Path, differences: list[int]) -> Done:
    (folder / "mapping.yaml").write_text(MAPPING)
    rows = (f"{START_S + 15 * number},alice,app,{amount}" for number, amount in enumerate(differences))
    (folder / "counters.csv").write_text("\n".join(["at,user,client,amount", *rows, ""]))
    manifests = folder / "quotas"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster())
    (manifests / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "20KB"})))
    command = ("backtest", "quotas", "--traffic", "counters.csv", "--mapping", "mapping.yaml", "--format", "json")
    return invoke(*command, cwd=folder)


def test_one_reset_is_one_unreadable_row_and_the_rest_is_judged(tmp_path: Path) -> None:
    differences = [1000] * 200 + [-199_000] + [1000] * 199

    done = backtest(tmp_path, differences)

    assert done.code == 0, done.err
    (verdict,) = done.json()["verdicts"]
    assert verdict["metrics"]["samples"] == 399
    assert verdict["verdict"] != "throttled"
    assert done.json()["provenance"]["unreadable"]["lines"] == 1


def test_a_counter_that_resets_all_the_time_is_refused(tmp_path: Path) -> None:
    done = backtest(tmp_path, [1000, -1000] * 50)

    assert (done.code, "--max-unreadable" in done.err) == (1, True), done.err
