"""``rightsize --write requests``: one pull request for each owner, kept true by each run, and the weekly job that asks for it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.features.rightsizing.conftest import MIB, World, burst
from tests.support import manifests
from tests.support.command import Done, invoke
from tests.support.forge import Forge
from tests.support.github_server import REPOSITORY, TOKEN, GitHubServer, github_server
from tests.support.manifests import cluster, quotas

ORDERS, PAYMENTS = (f"refs/heads/kafka-quotas/rightsize/prod/of-{owner}" for owner in ("orders", "payments"))

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class Repository(Forge):
    """With the manifests of two owners and their traffic."""

    def __init__(self, folder: Path, github: GitHubServer) -> None:
        super().__init__(folder, github)
        self.work.write("cluster.yaml", manifests.cluster())
        self.work.write("kafka-quotas.yaml", manifests.repository(owners={"orders": {}, "payments": {}}))
        for owner in ("orders", "payments"):
            self.limit(owner, "1MiB")
        github.pulls = []
        self.push(LONG_AGO)
        self.use(orders=4, payments=2)

    def limit(self, owner: str, value: str) -> None:
        entry = ({"user": owner}, {"producer_byte_rate": value})
        self.work.write(f"{owner}.yaml", manifests.quotas(entry, owner=owner))

    def use(self, **rates: float) -> None:
        """The highest rate of each owner's user, in MiB/s."""
        World(self.folder).traffic(*(burst(user, rate * MIB) for user, rate in rates.items()))

    def rightsize(self) -> Done:
        github = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_API_URL": self.github.url, "GITHUB_TOKEN": TOKEN}
        traffic = str(self.folder / "traffic.parquet")
        done = invoke("rightsize", ".", "--traffic", traffic, "--write", "requests", cwd=self.work.folder, env=github)
        assert done.code == 0, done.err
        return done

    def request(self, owner: str) -> dict[str, Any]:
        (request,) = (pull for pull in self.github.pulls if pull["title"].endswith(owner))
        return request


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    with github_server() as github:
        yield Repository(tmp_path, github)


def test_each_owner_gets_its_own_request_and_the_files_here_stay(repository: Repository) -> None:
    before = repository.work.state()
    done = repository.rightsize()
    assert "Pull request #100 proposes 1 change of orders." in done.err
    assert '"4.75MiB"' in repository.changes(ORDERS)
    assert '"2.5MiB"' in repository.changes(PAYMENTS)
    assert "payments.yaml" not in repository.changes(ORDERS)
    assert sorted(pull["title"] for pull in repository.github.pulls) == [
        "Rightsize prod: 1 limit of orders",
        "Rightsize prod: 1 limit of payments",
    ]
    body = str(repository.request("orders")["body"])
    assert "**Merge to change these limits.**" in body
    assert "`user=orders` `producer_byte_rate`" in body
    assert "clear" in body
    assert repository.work.state()[0] == before[0]
    assert TOKEN not in done.err


def test_a_second_run_changes_nothing_and_other_traffic_updates_the_same_request(repository: Repository) -> None:
    repository.rightsize()
    first = repository.ref(ORDERS)
    assert "Pull request #100 proposes this already." in repository.rightsize().err
    assert repository.ref(ORDERS) == first
    repository.use(orders=8, payments=2)
    assert "Pull request #100 is updated." in repository.rightsize().err
    assert '"9.5MiB"' in repository.changes(ORDERS)
    assert len(repository.github.pulls) == 2


def test_a_limit_that_was_changed_since_is_left_alone_and_its_request_closed(repository: Repository) -> None:
    repository.rightsize()
    repository.limit("orders", "1.5MiB")
    repository.push(datetime.datetime(2027, 2, 20, tzinfo=datetime.UTC))
    done = repository.rightsize()
    assert "the value was changed on 2027-02-20, and two whole weeks of traffic decide about it" in " ".join(done.out.split())
    assert "No limit of its owner needs a change now, so pull request #100 is closed." in done.err
    assert (repository.ref(ORDERS), bool(repository.ref(PAYMENTS))) == ("", True)


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
