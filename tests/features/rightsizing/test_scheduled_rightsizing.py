"""The weekly job that init writes: limits that no longer fit are in its summary, whether or not the cluster answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.features.rightsizing.conftest import MIB, World, burst
from tests.support.forge import Forge
from tests.support.github_server import github_server
from tests.support.manifests import cluster, quotas

CALLER = yaml.safe_load(
    (Path(__file__).parents[3] / "examples/gitops-repository/.github/workflows/quotas-rightsize.yml").read_text("utf-8")
)
NOWHERE = {"bootstrapServers": ["127.0.0.1:1"]}


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    """A cluster that does not answer, and its traffic in the repository."""
    world = World(tmp_path)
    world.traffic(burst("payments", 2 * MIB))
    with github_server() as github:
        made = Forge(tmp_path, github)
        made.work.write("prod.yaml", cluster("prod", connection=NOWHERE, traffic={"source": "history"}))
        made.work.write("payments.yaml", quotas(({"user": "payments"}, {"producer_byte_rate": "1MiB"})))
        (made.work.folder / "history").mkdir()
        (tmp_path / "traffic.parquet").rename(made.work.folder / "history" / "traffic.parquet")
        made.push()
        yield made


def test_the_job_shows_what_to_change_and_asks_for_the_token_that_it_needs(forge: Forge) -> None:
    (job,) = CALLER["jobs"].values()
    assert job["if"] == "${{ vars.RIGHTSIZE == 'true' }}", "off by default"
    (ran,) = forge.run(job["uses"].partition("@")[0].rpartition("/")[2], forge.scheduled(), **job["with"])["drift"]
    step = ran.step("Rightsize")
    assert step.outcome == "success", step.err
    assert "1 change proposed. Of 1 limit: 1 to raise." in step.summary
    assert any("rightsize needs the secret PROPOSE_TOKEN" in note for note in step.annotations)
    assert forge.ref("refs/heads/kafka-quotas/*") == ""


def test_without_the_input_nothing_is_read(forge: Forge) -> None:
    (ran,) = forge.run("drift.yml", forge.scheduled())["drift"]
    assert ran.step("Rightsize").outcome == "skipped"
