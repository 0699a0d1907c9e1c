"""Owners that are isolated, as a user runs them against a real broker: one owner is blocked, the others are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, repository
from tests.support.schemas import valid

pytestmark = pytest.mark.kafka

RATE = "producer_byte_rate"
TEAMS = ("a", "b", "c")


def user(name: str) -> raw_quotas.RawEntity:
    return frozenset({("user", name)})


class Company:
    """Three teams with a folder and two users each; ``a1`` and ``b1`` have a quota on the broker already."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        self.server = server
        owners = {f"team-{t}": {"paths": [f"teams/{t}/**"], "entities": [{"user": {"prefix": t}}]} for t in TEAMS}
        owners["platform"] = {"paths": ["platform/**"]}
        self.write("kafka-quotas.yaml", repository(owners=owners, clusterPaths=["clusters/*"]))
        self.write_cluster(isolate="owner")
        for team in TEAMS:
            self.quotas(team, {f"{team}1": 1000})
        raw_quotas.alter(server, {user("a1"): {RATE: 1000.0}, user("b1"): {RATE: 1000.0}})
        raw_quotas.settled(server)

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def write_cluster(self, **spec: object) -> None:
        self.write("clusters/prod.yaml", cluster("prod", connection={"bootstrapServers": [self.server]}, **spec))

    def quotas(self, team: str, values: dict[str, float]) -> None:
        entries = [({"user": name}, {RATE: value}) for name, value in values.items()]
        self.write(f"teams/{team}/quotas.yaml", quotas(*entries, owner=f"team-{team}"))

    def run(self, *arguments: str) -> Done:
        return invoke(*arguments, cwd=self.folder)

    def live(self) -> dict[str | None, float]:
        return {dict(entity)["user"]: values[RATE] for entity, values in raw_quotas.settled(self.server).items()}


@pytest.fixture
def company(tmp_path: Path, clean_kafka: Sandbox) -> Company:
    return Company(tmp_path, clean_kafka.bootstrap_servers)


def test_a_guard_of_one_team_withholds_only_its_changes(company: Company) -> None:
    company.quotas("a", {"a1": 10, "a2": 5000})
    company.quotas("b", {"b1": 2000})

    planned = company.run(
        "plan", "--format", "json", "--detailed-exitcode", "--out", "markdown=comment.md", "--out", "html=p.html"
    )
    plan = planned.json()
    valid(plan, "plan")
    assert (planned.code, plan["applyable"], plan["summary"]["create"], plan["summary"]["update"]) == (2, True, 1, 1)
    [withheld] = plan["withheld"]
    assert (withheld["owner"], [guard["id"] for guard in withheld["guards"]]) == ("team-a", ["large-reduction"])
    assert [change["entity"] for change in withheld["changes"]] == [{"user": "a1"}, {"user": "a2"}]

    done = company.run("apply", "--auto-approve", "--report", "report.json", "--audit", "audit.jsonl")
    assert done.code == 3
    assert company.live() == {"a1": 1000, "b1": 2000, "c1": 1000}
    assert "2 changes of 1 owner withheld." in done.out
    report = json.loads((company.folder / "report.json").read_text())
    valid(report, "apply-report")
    assert (report["result"], report["verified"], report["summary"]["applied"], report["digest"]) == (
        "done",
        True,
        2,
        plan["digest"],
    )
    assert [(each["owner"], each["entities"], each["reasons"][0]["id"]) for each in report["withheld"]] == [
        ("team-a", [{"user": "a1"}, {"user": "a2"}], "large-reduction")
    ]
    audit = json.loads((company.folder / "audit.jsonl").read_text())
    valid(audit, "audit")
    assert audit["withheld"] == ["team-a"]
    summary = (company.folder / "comment.md").read_text()
    assert "- **Withheld** `owner team-a`: 2 changes" in summary
    assert "**Ready in part: 2 changes of 1 owner withheld.**" in summary
    assert "large-reduction" in (company.folder / "p.html").read_text()

    again = company.run("apply", "--auto-approve")
    assert (again.code, company.live()["a1"]) == (3, 1000)
    assert "Refused. Nothing was written." in again.out
    accepted = company.run("apply", "--auto-approve", "--accept", "large-reduction")
    assert (accepted.code, company.live()) == (0, {"a1": 10, "a2": 5000, "b1": 2000, "c1": 1000})


def test_a_saved_plan_stays_valid_while_only_withheld_changes_move(company: Company) -> None:
    company.quotas("a", {"a1": 10})
    assert company.run("plan", "--out", "json=plan.json").code == 0
    company.quotas("a", {"a1": 900})
    stale = company.run("apply", "--auto-approve", "--plan", "plan.json")
    assert (stale.code, company.live()) == (3, {"a1": 1000, "b1": 1000})
    assert "stale" in stale.out + stale.err
    company.quotas("a", {"a1": 20})
    assert company.run("apply", "--auto-approve", "--plan", "plan.json").code == 3
    assert company.live() == {"a1": 1000, "b1": 1000, "c1": 1000}


def test_a_broken_file_of_one_team_is_named_and_the_others_are_planned(company: Company) -> None:
    company.quotas("b", {"b1": 2000})
    company.write("teams/a/quotas.yaml", "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec: {quotas: [\n")
    planned = company.run("plan", "--format", "json")
    plan = planned.json()
    valid(plan, "plan")
    assert planned.code == 1
    assert (plan["complete"], plan["summary"]["update"], plan["errored"]) == (False, 1, False)
    [withheld] = plan["withheld"]
    assert (withheld["owner"], withheld["changes"], withheld["findings"][0]["file"]) == ("team-a", [], "teams/a/quotas.yaml")
    done = company.run("apply", "--auto-approve")
    assert (done.code, company.live()) == (3, {"a1": 1000, "b1": 2000, "c1": 1000})
    drift = company.run("drift", "--format", "json")
    assert drift.code == 1
    errors = [finding["file"] for finding in drift.json()["findings"] if finding["severity"] == "error"]
    assert errors == ["teams/a/quotas.yaml"]


def test_one_owner_can_be_planned_and_applied_alone(company: Company) -> None:
    company.write_cluster()
    company.quotas("a", {"a1": 10})
    company.quotas("b", {"b1": 2000})
    assert company.run("apply", "--auto-approve").code == 3
    planned = company.run("plan", "--owner", "team-b", "--format", "json", "--out", "json=plan.json")
    assert (planned.code, [change["entity"] for change in planned.json()["changes"]]) == (0, [{"user": "b1"}])
    assert "withheld" not in planned.json()
    done = company.run("apply", "--owner", "team-b", "--plan", "plan.json", "--auto-approve")
    assert (done.code, company.live()) == (0, {"a1": 1000, "b1": 2000})
    unknown = company.run("plan", "--owner", "team-x")
    assert unknown.code == 64
    assert "team-x" in unknown.err


def test_errors_that_concern_no_team_stop_everything(company: Company) -> None:
    company.write(
        "clusters/other.yaml", "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: other}\nspec: {prune: 1}\n"
    )
    assert company.run("apply", "--auto-approve", "--cluster", "prod").code == 1
    assert company.live() == {"a1": 1000, "b1": 1000}
