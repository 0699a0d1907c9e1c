"""Manifests from Python: the same documents as the commands, rows and tables, and arguments that cannot work."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reconciler.client import Drift, ManifestCluster, PlannedChange, entity, manifests, to_json
from reconciler.errors import FileAccessError, ManifestError, StalePlanError, TrafficError, UsageError
from tests.support.command import invoke
from tests.support.manifests import snapshot

HEAD = "apiVersion: kafka-quotas/v1\n"
CLUSTER = f"{HEAD}kind: Cluster\nmetadata: {{name: prod}}\nspec: {{prune: never}}\n"
QUOTAS = f"""{HEAD}kind: ClientQuotas
metadata: {{name: q}}
spec:
  quotas:
    - match: {{user: payments}}
      quotas: {{producer_byte_rate: 1MiB}}
    - match: {{user: {{default: true}}}}
      quotas: {{producer_byte_rate: 2MiB, consumer_byte_rate: 4MiB}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "quotas" / "q.yaml").write_text(QUOTAS, encoding="utf-8")
    write_snapshot(tmp_path, {"payments": 8_388_608.0})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_snapshot(folder: Path, users: dict[str, float]) -> None:
    entities = {entity(user=name): {"producer_byte_rate": rate} for name, rate in users.items()}
    (folder / "now.json").write_text(snapshot(entities), encoding="utf-8")


def prod(**more: object) -> ManifestCluster:
    return manifests(["quotas"], snapshot="now.json", **more)  # type: ignore[arg-type]  # the test chooses


def test_a_plan_is_the_one_of_the_command_byte_for_byte(folder: Path) -> None:
    command = invoke("plan", "quotas", "--current", "now.json", "--format", "json", cwd=folder)

    planned = prod().plan()

    assert to_json(planned.plan) == command.out
    assert [guard.id for guard in planned.plan.tripped] == [
        guard["id"] for guard in command.json()["guards"] if guard["status"] == "needs-acceptance"
    ]


def test_drift_is_the_one_of_the_command_byte_for_byte(folder: Path) -> None:
    command = invoke("drift", "quotas", "--current", "now.json", "--format", "json", cwd=folder)

    found = prod().drift()

    assert to_json(found) == command.out
    assert found.differs


def test_a_snapshot_is_never_written_to() -> None:
    with pytest.raises(UsageError, match="snapshot cannot be written"):
        prod().apply()
    with pytest.raises(UsageError, match="snapshot cannot be written"):
        prod().plan().apply()


def test_broken_manifests_raise_with_every_finding(folder: Path) -> None:
    (folder / "quotas" / "bad.yaml").write_text(QUOTAS.replace("1MiB", "1 apple").replace("consumer", "eater"), encoding="utf-8")

    with pytest.raises(ManifestError) as stopped:
        prod().plan()

    assert {finding.id for finding in stopped.value.findings} >= {"unknown-unit", "unknown-quota-key"}


@pytest.mark.parametrize("factor", [1.0, 0.0, -2.0, float("nan"), float("inf")])
def test_a_factor_that_lowers_nothing_is_refused(factor: float) -> None:
    with pytest.raises(UsageError, match=r"factor from 1\.01 on"):
        manifests(["quotas"]).apply(step_down=factor)


def test_a_watch_of_no_steps_is_refused() -> None:
    with pytest.raises(UsageError, match="watch needs step_down"):
        manifests(["quotas"]).apply(watch=["spec.traffic"])
    with pytest.raises(UsageError, match="watch is a list"):
        manifests(["quotas"]).apply(step_down=2, watch="spec.traffic")


def test_a_saved_plan_that_is_none_is_refused_before_the_cluster_is_asked() -> None:
    with pytest.raises((FileAccessError, StalePlanError), match="saved_plan"):
        manifests(["quotas"]).apply(saved_plan="{}")


def test_a_cluster_without_a_connection_is_an_error_of_the_project() -> None:
    with pytest.raises(UsageError, match="No connection is configured"):
        manifests(["quotas"]).plan()


def test_traffic_that_is_missing_or_without_a_time_zone_is_refused(folder: Path) -> None:
    import datetime

    with pytest.raises(UsageError, match="No traffic is given"):
        prod().backtest()
    with pytest.raises(UsageError, match="time zone"):
        prod().backtest(["x"], since=datetime.datetime(2026, 1, 1))
    with pytest.raises((TrafficError, UsageError)):
        prod().backtest([str(folder / "nothing-here")])
    with pytest.raises(UsageError, match="stands alone"):
        prod().backtest(["prometheus+http://127.0.0.1:1", "x"])


def test_nothing_is_printed_and_no_signal_handler_changes(capfd: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    results: list[object] = []

    def work() -> None:
        results.extend((prod().plan(show_effects=True), prod().drift()))

    # Tasks of a platform run in other threads than the main one, where no handler can be set.
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert [type(result) for result in results] == [PlannedChange, Drift]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert capfd.readouterr() == ("", "")


def test_the_import_lists_its_names_and_loads_no_client_of_kafka_and_no_engine() -> None:
    code = (
        "import sys, reconciler.client as client\nassert {'connect', 'manifests', 'entity'} <= set(dir(client))\n"
        "from reconciler.client import manifests, matching\n"
        "heavy = {'kafka', 'kazoo', 'pyspark', 'pyarrow', 'numpy', 'pandas'}\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & heavy))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_an_accepted_guard_is_accepted_in_the_plan_and_another_name_is_refused() -> None:
    planned = prod().plan(accept=["large-reduction"])

    assert "large-reduction" not in [guard.id for guard in planned.plan.tripped]
    assert planned.plan.tripped != ()
    with pytest.raises(UsageError, match="unknown guard"):
        prod().plan(accept=["everything"])
