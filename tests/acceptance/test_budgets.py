"""Budgets of owners as users meet them: a pull request above one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, repository, snapshot

MIB = 2.0**20
BUDGET = {"owner": "payments", "producer_byte_rate": "100MiB"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "live.json").write_text(snapshot({}, brokers=(1, 2, 3)))
    (tmp_path / "prod.yaml").write_text(cluster())
    return tmp_path


def manifests(folder: Path, *values: object, budgets: tuple[object, ...] = (BUDGET,), **spec: object) -> None:
    (folder / "kafka-quotas.yaml").write_text(repository(budgets=list(budgets), **spec))
    entries = [({"user": f"app-{number}"}, {"producer_byte_rate": value}) for number, value in enumerate(values)]
    (folder / "quotas.yaml").write_text(quotas(*entries, owner="payments"))


def findings(folder: Path, command: str = "validate", *arguments: str) -> dict[str, str]:
    document = invoke(command, ".", "--format", "json", *arguments, cwd=folder).json()
    return {finding["id"]: finding["message"] for finding in document["findings"]}


def plan(folder: Path, *arguments: str) -> Done:
    return invoke("plan", ".", "--current", "live.json", *arguments, cwd=folder)


def test_an_owner_above_its_budget_is_refused_at_validate(folder: Path) -> None:
    manifests(folder, "50MiB", "30MiB", "30MiB")
    done = invoke("validate", ".", cwd=folder)

    assert done.code == 1
    assert "quotas.yaml:4" in done.out
    assert (
        "payments has 110 MiB/s of producer_byte_rate on each broker of cluster prod, 10 MiB/s more than its budget of 100 MiB/s."
        in done.out
    )


def test_totals_count_against_a_budget_once_the_brokers_are_known(folder: Path) -> None:
    manifests(folder, {"clusterTotal": "240MiB"}, "30MiB")
    assert findings(folder) == {}

    done = plan(folder)
    assert done.code == 1
    assert "[above-budget]" in done.out


def test_a_pull_request_does_not_raise_the_budget_that_judges_it(tmp_path: Path) -> None:
    made = GitRepository(tmp_path / "repository")
    made.write("prod.yaml", cluster())
    made.write("quotas.yaml", quotas(({"user": "app"}, {"producer_byte_rate": "90MiB"}), owner="payments"))
    made.write("kafka-quotas.yaml", repository(budgets=[BUDGET]))
    made.commit()
    made.branch()
    made.write("quotas.yaml", quotas(({"user": "app"}, {"producer_byte_rate": "190MiB"}), owner="payments"))
    made.write("kafka-quotas.yaml", repository(budgets=[{**BUDGET, "producer_byte_rate": "200MiB"}]))
    made.commit()
    (tmp_path / "live.json").write_text(snapshot({user("app"): {"producer_byte_rate": 90 * MIB}}))

    assert invoke("plan", "--current", "../live.json", cwd=made.folder).code == 0
    refused = invoke("plan", "--current", "../live.json", "--trusted-ref", "main", cwd=made.folder)
    assert refused.code == 1
    assert "[above-budget]" in refused.out
