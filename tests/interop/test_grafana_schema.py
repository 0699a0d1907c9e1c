"""Dashboards against the types that Grafana publishes for them. No Grafana loads them here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import invoke
from tests.support.grafana_schema import check_dashboard
from tests.support.manifests import cluster, quotas

pytestmark = pytest.mark.interop

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_dashboard_of_rules_and_that_of_the_service_have_grafanas_types(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(cluster())
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"})))
    of_rules = json.loads(invoke("rules", ".", "--format", "grafana", cwd=tmp_path).out)
    of_service = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    wrong = {**of_rules, "refresh": 5, "time": {"since": "now-1h"}}
    (tmp_path / "types").mkdir()

    assert [check_dashboard(one, tmp_path / "types") for one in (of_rules, of_service)] == ["", ""]
    complaints = check_dashboard(wrong, tmp_path / "types")
    assert "Type 'number' is not assignable to type 'string'" in complaints
    assert "does not exist in type" in complaints
