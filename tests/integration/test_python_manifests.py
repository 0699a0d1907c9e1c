"""Manifests from Python on a real broker: planned in one task, applied in another, refused, stepped, audited; the example."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from reconciler.client import manifests, to_json
from reconciler.errors import GuardRefusedError, StalePlanError
from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import invoke
from tests.support.manifests import prod_cluster, quotas
from tests.support.pages import before
from tests.support.polling import wait_until

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "airflow"
PAYMENTS = frozenset({("user", "payments")})
LIVE: dict[raw_quotas.RawEntity, dict[str, float]] = {PAYMENTS: {"producer_byte_rate": 8_388_608.0}}


@pytest.fixture
def prod(clean_kafka: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    servers = clean_kafka.bootstrap_servers
    raw_quotas.alter(servers, LIVE)
    wait_until(lambda: raw_quotas.describe(servers) == LIVE)
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "cluster.yaml").write_text(prod_cluster(clean_kafka.cluster_id, servers))
    monkeypatch.chdir(tmp_path)
    declare("16MiB")
    return clean_kafka


def declare(rate: str) -> None:
    Path("quotas", "payments.yaml").write_text(quotas(({"user": "payments"}, {"producer_byte_rate": rate})))


def live(prod: Sandbox) -> float:
    return raw_quotas.describe(prod.bootstrap_servers)[PAYMENTS]["producer_byte_rate"]


def test_a_plan_that_is_not_the_reviewed_one_is_refused(prod: Sandbox) -> None:
    planned = manifests(["quotas"]).plan()
    declare("32MiB")

    with pytest.raises(StalePlanError, match="Plan again"):
        planned.apply()
    with pytest.raises(StalePlanError, match="Plan again"):
        manifests(["quotas"]).apply(saved_plan=to_json(planned.plan))
    assert live(prod) == 8_388_608.0


def test_audit_and_baseline_are_those_of_the_command(prod: Sandbox) -> None:
    manifests(["quotas"]).apply(audit="audit.jsonl", record_baseline="baseline.json")
    declare("1MiB")
    with pytest.raises(GuardRefusedError):
        manifests(["quotas"]).apply(audit="audit.jsonl", record_baseline="baseline.json")

    lines = [json.loads(line) for line in Path("audit.jsonl").read_text().splitlines()]
    baseline = json.loads(Path("baseline.json").read_text())
    done = invoke("drift", "quotas", "--baseline", "baseline.json", "--format", "json", cwd=Path.cwd())
    drift = manifests(["quotas"]).with_baseline("baseline.json").drift()

    assert [(line["command"], line["result"]) for line in lines] == [("apply", "done"), ("apply", "refused")]
    assert baseline["cluster"]["id"] == prod.cluster_id
    assert [each.drift.value for each in drift.entities] == ["unapplied"] == [one["class"] for one in done.json()["entities"]]


def tasks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quota_tasks", EXAMPLE / "quota_tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tasks_of_the_example_plan_apply_and_find_drift(prod: Sandbox) -> None:
    example = tasks()

    planned = json.loads(json.dumps(example.plan_quotas("prod", "quotas")))  # as an XCom does it
    assert (planned["changes"], planned["guards"]) == (1, [])
    assert [row["live"] for row in example.check_drift("prod", "quotas")] == [8_388_608.0]
    assert example.apply_plan(planned, "prod", "quotas") == "done"

    assert live(prod) == 16_777_216.0
    assert example.check_drift("prod", "quotas") == []
    raw_quotas.alter(prod.bootstrap_servers, {PAYMENTS: {"producer_byte_rate": 5.0}})
    wait_until(lambda: live(prod) == 5.0)
    assert example.check_drift("prod", "quotas") == [
        {"entity": "user=payments", "key": "producer_byte_rate", "declared": 16_777_216.0, "live": 5.0}
    ]


def test_the_blocks_of_the_page_run(prod: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    page = before("from-python", "Backtest in a notebook")
    whole = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if block.startswith("from ")]

    exec(compile(whole[0], "from-python.md", "exec"), {})
    declare("1MiB")
    exec(compile(whole[1], "from-python.md", "exec"), {})
    declare("20MiB")
    exec(compile(whole[2], "from-python.md", "exec"), {})

    assert len(whole) == 3
    assert capsys.readouterr().out == (
        "user=payments producer_byte_rate 8388608.0 -> 16777216.0\ndone True\nneeds acceptance: large-reduction\n"
    )
    assert live(prod) == 20_971_520.0
