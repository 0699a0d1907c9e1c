"""Three hundred owners, one of which has a broken file: it alone is withheld, by its name and its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import invoke
from tests.support.manifests import cluster, quotas, repository, snapshot

OWNERS = 300
BROKEN = "team-217"


@pytest.fixture
def company(tmp_path: Path) -> Path:
    names = [f"team-{number:03}" for number in range(OWNERS)]
    owners = {name: {"paths": [f"teams/{name}/**"], "entities": [{"user": {"prefix": f"{name}-"}}]} for name in names}
    (tmp_path / "kafka-quotas.yaml").write_text(repository(owners=owners, clusterPaths=["prod.yaml"]))
    (tmp_path / "prod.yaml").write_text(cluster("prod", isolate="owner", prune="confirm"))
    for name in names:
        (tmp_path / "teams" / name).mkdir(parents=True)
        text = quotas(({"user": f"{name}-app"}, {"producer_byte_rate": "1MiB"}), owner=name)
        (tmp_path / "teams" / name / "quotas.yaml").write_text(text[:-30] if name == BROKEN else text)
    (tmp_path / "live.json").write_text(snapshot({}))
    return tmp_path


def test_all_others_are_planned_and_the_broken_file_is_named(company):
    done = invoke("plan", ".", "--current", "live.json", "--format", "json", "--out", "text=plan.txt", cwd=company)
    plan = done.json()

    assert done.code == 1
    planned = {change["entity"]["user"] for change in plan["changes"]}
    assert planned == {f"team-{number:03}-app" for number in range(OWNERS)} - {f"{BROKEN}-app"}
    [withheld] = plan["withheld"]
    assert (withheld["owner"], withheld["findings"][0]["file"]) == (BROKEN, f"teams/{BROKEN}/quotas.yaml")
    assert f"teams/{BROKEN}/quotas.yaml" in (company / "plan.txt").read_text()
    assert plan["applyable"]
