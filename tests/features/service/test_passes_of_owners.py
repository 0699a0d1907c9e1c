"""Passes over a cluster whose owners are isolated: what an outage needs is put back while another team's removal waits."""

from __future__ import annotations

from pathlib import Path

from tests.builders import user
from tests.fakes import FakeCluster
from tests.support.manifests import cluster, quotas, repository
from tests.support.service_world import ServiceWorld

RATE = "producer_byte_rate"
MIB = 1024.0**2


def write(folder: Path, *, prune: str = "always", **rates: str) -> None:
    """A team for each first letter of the users."""
    teams = sorted({name[0] for name in rates} | {"a", "b"})
    owners = {team: {"paths": [f"{team}.yaml"], "entities": [{"user": {"prefix": team}}]} for team in teams}
    (folder / "kafka-quotas.yaml").write_text(repository(owners=owners, clusterPaths=["cluster.yaml"]))
    (folder / "cluster.yaml").write_text(
        cluster(prune=prune, isolate="owner", guards={"too-many-removals": {"count": 1, "percent": 100}})
    )
    for team in teams:
        entries = [({"user": name}, {RATE: rate}) for name, rate in rates.items() if name.startswith(team)]
        (folder / f"{team}.yaml").write_text(quotas(*entries, owner=team))


def live(**values: float) -> FakeCluster:
    return FakeCluster({user(name): {RATE: value * MIB} for name, value in values.items()})


def rates_of(cluster: FakeCluster) -> dict[str, float]:
    return {str(entity): quotas[RATE] / MIB for entity, quotas in cluster.current_state().entities.items()}


def test_a_value_is_put_back_while_removals_of_another_team_wait(tmp_path: Path) -> None:
    write(tmp_path, a1="1MiB", b1="8MiB")
    world = ServiceWorld(tmp_path, live(a1=1, a2=1, a3=1, b1=2))

    world.run(50)

    assert world.results == ["withheld"]
    assert rates_of(world.cluster) == {"user=a1": 1, "user=a2": 1, "user=a3": 1, "user=b1": 8}
    assert world.metric("withheld_owners") == 1
    assert world.metric("guard_tripped", guard="too-many-removals") == 1
    assert world.metric("manifests_valid") == 1
    assert world.metric("consecutive_failures") == 0
    assert any("withheld: owner a (2 changes)" in line for line in world.log)
    assert any("too-many-removals" in line for line in world.log)

    world.run(100)
    assert world.results == ["withheld", "withheld"]
    assert world.metric("changes_total", action="update", status="applied") == 1
