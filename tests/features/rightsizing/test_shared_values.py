"""A value that several clusters share is judged on each of them, by the traffic of each, and gets one new value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.features.rightsizing.conftest import MIB, World, burst
from tests.support import manifests
from tests.support.command import Done, invoke
from tests.support.recorded_parquet import Flow, write_traffic

TRAFFIC = {"prod": "prod", "staging": "staging"}


class Fleet(World):
    """Two clusters, each with traffic of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for name in ("cluster", "staging"):
            cluster = "prod" if name == "cluster" else name
            self.write(f"{name}.yaml", manifests.cluster(cluster, traffic={"source": f"../{cluster}"}))

    def send(self, cluster: str, **rates: float) -> None:
        """The highest rate of each user on the only broker of a cluster, in MiB/s."""
        flows = [Flow(user="steady", amount=1, every_s=600, begin_s=0, end_s=100 * 86_400.0)]
        flows += [burst(user, rate * MIB) for user, rate in rates.items()]
        (self.folder / cluster).mkdir(exist_ok=True)
        write_traffic(self.folder / cluster / "traffic.parquet", flows)

    def size(self, *arguments: str) -> Done:
        return invoke("rightsize", "quotas", *(arguments or ("--all-clusters",)), cwd=self.folder)

    def rows(self, *arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
        """By cluster and user what the document has of its quota."""
        done = self.size(*(arguments or ("--all-clusters",)), "--format", "json")
        assert done.code == 0, done.err
        return {
            (report["cluster"], quota["entity"]["user"]): quota
            for report in done.json()["clusters"]
            for quota in report["quotas"]
        }


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_a_shared_value_rises_to_what_the_neediest_cluster_needs(fleet: Fleet) -> None:
    fleet.limits(a="1MiB")
    fleet.send("prod", a=2)
    fleet.send("staging", a=4)
    rows = fleet.rows("--cluster", "staging", "--cluster", "prod")
    assert {name: (row["verdict"], row["value"], row["left"]) for name, row in rows.items()} == {
        ("prod", "a"): ("raise", 4.75 * MIB, None),
        ("staging", "a"): ("raise", 4.75 * MIB, None),
    }
    reason = rows["prod", "a"]["reason"].replace("\N{NO-BREAK SPACE}", " ")
    assert "user=a on staging takes its value from the same place, and needs 4.75 MiB/s" in reason
    assert {row["backtest"]["verdict"] for row in rows.values()} == {"clear"}


def test_a_shared_value_falls_only_as_far_as_every_cluster_lets_it(fleet: Fleet) -> None:
    fleet.limits(both="20MiB", one="20MiB", idle="20MiB")
    fleet.send("prod", both=3, one=0.1, idle=0.1)
    fleet.send("staging", both=5, one=15)
    rows = fleet.rows()
    assert {rows[cluster, "both"]["value"] for cluster in TRAFFIC} == {10 * MIB}
    assert "user=one on staging, which a lower one may not fit" in rows["prod", "one"]["left"]
    assert rows["staging", "one"]["value"] is None
    assert "user=idle on staging" in rows["prod", "idle"]["left"], "no traffic there is no proof that less is enough"


def test_the_values_are_written_once_and_mean_the_same_on_all_clusters(fleet: Fleet) -> None:
    overrides = '"overrides": [{"clusters": ["staging"], "quotas": {"consumer_byte_rate": "9MiB"}}], "quotas": {"prod'
    text = manifests.quotas(({"user": "a"}, {"producer_byte_rate": "1MiB"}))
    fleet.write("team.yaml", text.replace('"quotas": {"prod', overrides))
    fleet.send("prod", a=2)
    fleet.send("staging", a=4)
    before = fleet.text()
    done = fleet.size("--all-clusters", "--write", "files")
    assert done.code == 0, done.err
    assert fleet.text() == before.replace('"1MiB"', '"4.75MiB"')
    assert "2 limits changed in quotas/team.yaml" in done.err
    assert fleet.rows()["staging", "a"]["verdict"] == "fits"


def test_a_cluster_that_cannot_be_read_leaves_what_it_shares_and_the_rest_is_judged(fleet: Fleet) -> None:
    fleet.limits(shared="1MiB")
    own = manifests.quotas(({"user": "own"}, {"producer_byte_rate": "1MiB"}))
    fleet.write("own.yaml", own.replace("spec: {", 'spec: {"clusters": ["prod"], '))
    fleet.send("prod", shared=2, own=2)
    done = fleet.size("--all-clusters", "--format", "json")
    assert done.code == 1
    prod, staging = done.json()["clusters"]
    rows = {quota["entity"]["user"]: quota for quota in prod["quotas"]}
    assert "staging" in json.dumps(staging["cluster"])
    assert "also applies on staging, which was not checked" in rows["shared"]["left"]
    assert (rows["own"]["value"], rows["own"]["left"]) == (2.5 * MIB, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--all-clusters", "--cluster", "prod"), "exclude each other"),
        (("--all-clusters", "--traffic", "prod"), "--traffic is of one cluster"),
        (("--cluster", "prod", "--cluster", "staging", "--current", "x.json"), "--current is of one cluster"),
        (("--cluster", "prod", "--cluster", "staging", "--format", "html"), "More than one --cluster prints text or json"),
        (("--all-clusters", "--write", "requests"), "--write requests is for one cluster"),
        (("--cluster", "prod", "--cluster", "stagng"), "Did you mean 'staging'"),
    ],
)
def test_options_of_one_cluster_are_refused_for_several(fleet: Fleet, arguments: tuple[str, ...], words: str) -> None:
    fleet.limits(a="1MiB")
    done = fleet.size(*arguments)
    assert (done.code, words in done.err) == (64, True), done.err
