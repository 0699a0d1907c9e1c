"""Pull requests under act into a cluster that no machine here reaches: checked by a Kafka, and judged by traffic."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import user
from tests.support.act_forge import ActForge, act_forge
from tests.support.manifests import quotas, snapshot

pytestmark = pytest.mark.interop

MIB = 1024 * 1024
RECORDING = Path(__file__).parents[1] / "traffic/recordings/kafka-4.3.1/kafka-request.log.gz"
SUGGESTION = re.compile(r"^```suggestion\n(?P<text>.*?)\n```$", re.DOTALL | re.MULTILINE)
PAYMENTS = "teams/payments/quotas.yaml"
LIVE = {
    user("analytics-clickstream"): {"producer_byte_rate": 10.0 * MIB},
    user("analytics-reporting"): {"consumer_byte_rate": 60.0 * MIB},
    user("payments-api"): {"producer_byte_rate": 10.0 * MIB, "consumer_byte_rate": 20.0 * MIB, "request_percentage": 200.0},
    user("payments-settlement"): {"producer_byte_rate": 50.0 * MIB, "consumer_byte_rate": 100.0 * MIB},
}
SCANNING = """\
on: pull_request
permissions: {}
jobs:
  scan:
    permissions: {contents: read, security-events: write}
    uses: OWNER/kafka-quotas/.github/workflows/code-scanning.yml@0000000000000000000000000000000000000000
    with: {requirement: REQUIREMENT}
"""

REPLAYING = """\
on: schedule
permissions: {}
jobs:
  backtest:
    permissions: {actions: read, contents: read}
    uses: OWNER/kafka-quotas/.github/workflows/backtest.yml@0000000000000000000000000000000000000000
    with: {requirement: REQUIREMENT, cluster: prod, fail-on: error}
"""


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[ActForge]:
    """A cluster that no machine here can reach, and its snapshot; a pull request into it changes one value."""
    with act_forge(tmp_path, {"staging": "127.0.0.1:1"}) as made:
        made.store("refs/kafka-quotas/snapshot/staging", {"snapshot.json": snapshot(LIVE)})
        made.edit(PAYMENTS, "producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB")
        yield made


def test_a_plan_that_apply_would_refuse_fails_its_job_after_the_comment_with_the_steps(forge: ActForge) -> None:
    forge.give("quotas-pull-request.yml", fail_on_guard=True, step_down="2")
    forge.edit("clusters/staging.yaml", "  prune:", "  guards: {large-reduction: {factor: 0.5}}\n  prune:")
    forge.push()
    forge.edit(PAYMENTS, "producer_byte_rate: 12MiB", "producer_byte_rate: 2MiB")
    ran = forge.under_act("quotas-pull-request.yml", forge.proposed(*forge.propose()))
    assert ran.code == 1
    job = ran.job("Plan")
    assert [name for name, step in job.steps.items() if step.outcome == "failure"] == ["Fail for guards"]
    assert "apply would refuse the plan of staging" in job.steps["Fail for guards"].annotations[0]
    assert job.steps["Plan"].outputs["guards"] == "large-reduction"
    assert (ran.artifacts / "quotas-plan-staging/plan.json").is_file()
    # The steps that apply takes, with the same factor as its own input.
    assert "in 3 steps: 10 MiB/s → 5 MiB/s → 2.5 MiB/s → 2 MiB/s." in forge.comment("staging")


def test_code_scanning_is_given_findings_and_they_fail_nothing(forge: ActForge) -> None:
    forge.work.write(".github/workflows/scanning.yml", SCANNING.replace("REQUIREMENT", str(forge.requirement)))
    forge.edit(PAYMENTS, "producer_byte_rate: 12MiB", "producer_byte_rate: 12XiB")
    ran = forge.under_act("scanning.yml", forge.proposed(*forge.propose()))
    assert ran.code == 0, ran.log
    (found,) = json.loads((ran.artifacts / "sarif/kafka-quotas.sarif").read_text())["runs"][0]["results"]
    assert found["ruleId"] == "unknown-unit"
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == PAYMENTS


def test_a_proposal_is_checked_by_a_kafka_that_the_job_starts(forge: ActForge) -> None:
    forge.give("quotas-pull-request.yml", server_check="sandbox")
    ran = forge.under_act("quotas-pull-request.yml", forge.proposed(*forge.propose()))
    assert ran.code == 0, ran.log
    assert ran.job("Plan").steps["actions/setup-java"].outcome == "success"
    assert "checked by a local Kafka" in ran.job("Plan").summary


def test_traffic_is_kept_every_night_and_a_committed_suggestion_turns_a_red_proposal_green(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "kafka-request.log.gz").write_bytes(RECORDING.read_bytes())
    (tmp_path / "now.json").write_text(snapshot({}))
    arguments = ("--current", "now.json", "--name", "prod", "--traffic", str(logs.parent))
    with act_forge(tmp_path, {}, *arguments) as forge:
        (manifest,) = forge.work.folder.glob("clusters/*.yaml")
        rule = "  backtest: {fail: [{verdicts: [throttled], reason: nobody is throttled}]}\n"
        manifest.write_text(manifest.read_text().rstrip() + "\n" + rule)
        forge.push()
        nightly = forge.under_act("quotas-traffic.yml", forge.scheduled())
        assert nightly.code == 0, nightly.log
        forge.store("refs/kafka-quotas/snapshot/prod", {"snapshot.json": snapshot({})})

        forge.work.write("quotas/alice.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "10KiB"})))
        head, merge = forge.propose()
        red = forge.under_act("quotas-pull-request.yml", forge.proposed(head, merge))
        assert red.code == 1
        assert forge.github.status("kafka-quotas/prod", head) == "failure"
        assert "nobody is throttled" in forge.comment("prod")
        (offered,) = forge.github.line_comments.values()
        forge.work.git("checkout", "-q", "change")
        commit_suggestion(forge.work.folder / offered["path"], offered["line"], offered["body"])
        head, merge = forge.propose()
        green = forge.under_act("quotas-pull-request.yml", forge.proposed(head, merge))
        assert green.code == 0, green.log
        assert forge.github.status("kafka-quotas/prod", head) == "neutral"
        assert forge.github.line_comments == {}

        forge.merge()
        forge.work.write(".github/workflows/replaying.yml", REPLAYING.replace("REQUIREMENT", str(forge.requirement)))
        forge.push()
        replayed = forge.under_act("replaying.yml", forge.scheduled())
        assert replayed.code == 0, replayed.log
        assert "alice" in replayed.job("Backtest").summary
        report = json.loads((replayed.artifacts / "quotas-backtest-prod/backtest.json").read_text())
        assert "would-throttle" not in {finding["id"] for finding in report["findings"]}


def commit_suggestion(file: Path, number: int, body: str) -> None:
    """As the forge does: the lines of the block take the place of the line that it is on."""
    block = SUGGESTION.search(body)
    assert block is not None
    lines = file.read_text().split("\n")
    lines[number - 1 : number] = block["text"].split("\n")
    file.write_text("\n".join(lines))
