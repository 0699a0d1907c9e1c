"""The scheduled job: the limits that no longer fit are in its summary, whether or not the cluster answers; off by default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.features.rightsizing.conftest import MIB, World, burst
from tests.support.forge import Forge
from tests.support.github_server import github_server
from tests.support.manifests import cluster, quotas

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
    (ran,) = forge.run("drift.yml", forge.scheduled(), rightsize=True)["drift"]
    step = ran.step("Rightsize")
    assert step.outcome == "success", step.err
    assert "1 change proposed. Of 1 limit: 1 to raise." in step.summary
    assert any("rightsize needs the secret PROPOSE_TOKEN" in note for note in step.annotations)
    assert forge.ref("refs/heads/kafka-quotas/*") == ""


def test_without_the_input_nothing_is_read(forge: Forge) -> None:
    (ran,) = forge.run("drift.yml", forge.scheduled())["drift"]
    assert ran.step("Rightsize").outcome == "skipped"
