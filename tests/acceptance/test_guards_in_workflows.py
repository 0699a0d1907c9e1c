"""``plan.yml`` with ``fail-on-guard``: the job fails when apply would refuse the plan, after comment and artifact."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import user
from tests.support import manifests
from tests.support.forge import Forge
from tests.support.github_server import github_server
from tests.support.markdown_views import by_github

MIB = 1024 * 1024
CUT = "producer_byte_rate: 10MiB", "producer_byte_rate: 1MiB"
QUOTAS = """\
apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: team}
spec:
  quotas:
    - match: {user: alice}
      quotas: {producer_byte_rate: 10MiB}
"""


@pytest.mark.parametrize(("fail", "result"), [(True, "failure"), (False, "success")])
def test_a_plan_that_apply_would_refuse_fails_the_job_where_that_is_chosen(tmp_path: Path, fail: bool, result: str) -> None:
    with github_server() as github:
        forge = Forge(tmp_path, github)
        forge.work.write("cluster.yaml", manifests.cluster(guards={"large-reduction": {"factor": 0.5}}))
        forge.work.write("quotas.yaml", QUOTAS)
        forge.push()
        state = manifests.snapshot({user("alice"): {"producer_byte_rate": 10.0 * MIB}}, None)
        forge.store("refs/kafka-quotas/snapshot/prod", {"snapshot.json": state})
        forge.work.write("quotas.yaml", QUOTAS.replace(*CUT))
        (planned,) = forge.on_pull_request(*forge.propose(), fail_on_guard=fail, step_down="2")["plan"]
        (posted,) = github.comments.values()
    assert (planned.result, planned.step("plan").outcome) == (result, "success"), planned.log
    assert ("apply would refuse the plan of prod" in planned.log) is fail
    assert planned.step("plan").outputs["guards"] == "large-reduction"
    assert (planned.artifacts["quotas-plan-prod"] / "plan.json").is_file()
    comment = by_github(str(posted["body"])).text()
    assert "large-reduction" in comment
    # The steps that apply takes, with the same factor as its own input.
    assert "producer_byte_rate of user=alice in 4 steps: 10 MiB/s → 5 MiB/s → 2.5 MiB/s → 1.25 MiB/s → 1 MiB/s." in comment
