"""Where Cluster manifests may lie, which of them need an id, and which cluster answers for which of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from reconciler.errors import WrongClusterError
from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Severity
from reconciler.model.state import ClusterIdentity
from reconciler.workflows.intent import claimed_elsewhere, validate_manifests
from reconciler.workflows.load import chosen_cluster, load_manifests
from tests.builders import user
from tests.support.manifests import cluster, quotas, repository

TEAMS = {"payments": {"paths": ["teams/payments/**"]}, "apps": {"paths": ["apps"]}}
ANYWHERE = {**TEAMS, "platform": {}}
ALICE = ({"user": "alice"}, {"producer_byte_rate": 1000})


def errors(root: Path, files: dict[str, str], path: str = ".") -> list[Finding]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return [one for one in validate_manifests([str(root / path)]).findings if one.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("spec", "place", "refused"),
    [
        ({}, "teams/payments/c.yaml", False),
        ({"owners": TEAMS}, "c.yaml", False),
        ({"owners": TEAMS}, "clusters/c.yaml", False),
        ({"owners": TEAMS}, "teams/c.yaml", False),
        ({"owners": TEAMS}, "teams/payments/c.yaml", True),
        ({"owners": TEAMS}, "teams/payments/deep/er/c.yaml", True),
        ({"owners": TEAMS}, "apps/c.yaml", True),
        ({"owners": ANYWHERE}, "c.yaml", False),
        ({"owners": ANYWHERE}, "clusters/c.yaml", True),
        ({"owners": {"all": {"paths": ["**"]}}}, "c.yaml", True),
        ({"owners": TEAMS, "clusterPaths": ["clusters/**"]}, "clusters/c.yaml", False),
        ({"owners": TEAMS, "clusterPaths": ["clusters/**"]}, "c.yaml", True),
        ({"owners": TEAMS, "clusterPaths": ["clusters/**"]}, "other/c.yaml", True),
        ({"owners": ANYWHERE, "clusterPaths": ["clusters/**"]}, "clusters/eu/c.yaml", False),
        ({"clusterPaths": ["clusters"]}, "teams/payments/c.yaml", True),
        ({"owners": TEAMS, "clusterPaths": ["teams/payments/c.yaml"]}, "teams/payments/c.yaml", False),
    ],
)
def test_a_cluster_manifest_lies_where_the_repository_manifest_allows_it(
    tmp_path: Path, spec: dict[str, object], place: str, *, refused: bool
) -> None:
    found = errors(tmp_path, {"kafka-quotas.yaml": repository(**spec), place: cluster()})
    assert [one.id for one in found] == (["cluster-misplaced"] if refused else [])
    for one in found:
        assert one.span is not None
        assert (one.span.file, one.span.line, one.span.column) == (str(tmp_path / place), 1, 1)
        assert "clusterPaths" in one.message
        assert one.related[0].span.file == str(tmp_path / "kafka-quotas.yaml")


def test_a_repository_manifest_in_a_team_s_folder_does_not_end_the_rule_of_the_one_above(tmp_path: Path) -> None:
    inner = "teams/payments/kafka-quotas.yaml"
    files = {
        "kafka-quotas.yaml": repository(owners=TEAMS),
        inner: repository(lint={"unusual-name": "off"}),
        "teams/payments/c.yaml": cluster(),
    }
    found = errors(tmp_path, files, "teams/payments")
    assert {one.id for one in found} == {"repository-misplaced", "cluster-misplaced"}
    (tmp_path / "kafka-quotas.yaml").write_text(repository(owners=TEAMS, exclude=["teams/payments"]), encoding="utf-8")
    assert errors(tmp_path, {}, "teams/payments") == []


@pytest.mark.parametrize(
    ("ours", "theirs", "without"),
    [
        ({"bootstrapServers": ["b1:9092", "b2:9092"]}, {"bootstrapServers": ["b2:9092"]}, ["a", "b"]),
        ({"bootstrapServers": ["B1.example.:9092"]}, {"bootstrapServers": ["x:1,b1.example:09092"]}, ["a", "b"]),
        ({"bootstrapServers": ["b1:9092"]}, {"bootstrapServers": ["b1:9093"]}, []),
        ({"bootstrapServers": ["b1:9092"]}, {"zookeeper": "b1:9092"}, []),
        ({"zookeeper": "zk:2181/a/"}, {"zookeeper": "other:2181,zk/a"}, ["a", "b"]),
        ({"zookeeper": "zk:2181/a"}, {"zookeeper": "zk:2181/b"}, []),
    ],
)
def test_two_manifests_of_one_server_need_an_id_each(
    tmp_path: Path, ours: dict[str, object], theirs: dict[str, object], without: list[str]
) -> None:
    found = errors(tmp_path, {"a.yaml": cluster("a", connection=ours), "b.yaml": cluster("b", connection=theirs)})
    assert [(one.id, Path(one.span.file).stem if one.span else "") for one in found] == [
        ("cluster-without-id", name) for name in without
    ]
    half = errors(tmp_path, {"a.yaml": cluster("a", connection=ours, clusterId="c1")})
    assert [Path(one.span.file).stem for one in half if one.span] == without[1:]
    assert errors(tmp_path, {"b.yaml": cluster("b", connection=theirs, clusterId="c1")}) == []


def others(root: Path, name: str, **ids: str | None) -> Callable[[ClusterIdentity], dict[Entity, str]]:
    for position, (one, cluster_id) in enumerate(ids.items()):
        spec = {"connection": {"bootstrapServers": [f"b{position}:9092"]}, **({"clusterId": cluster_id} if cluster_id else {})}
        (root / f"{one}.yaml").write_text(cluster(one, **spec), encoding="utf-8")
    (root / "q.yaml").write_text(quotas(ALICE), encoding="utf-8")
    loaded = load_manifests([str(root)])
    return partial(claimed_elsewhere, chosen_cluster(loaded, name), loaded)


def test_another_address_of_the_cluster_that_answered_is_the_same_cluster(tmp_path: Path) -> None:
    both = others(tmp_path, "prod", prod="c1", mirror="c1", other="c2")
    assert both(ClusterIdentity(id="c1")) == {user("alice"): "mirror"}


def test_without_an_id_of_its_own_a_manifest_does_not_reach_the_cluster_that_another_names(tmp_path: Path) -> None:
    evil = others(tmp_path, "evil", prod="c1", evil=None)
    with pytest.raises(WrongClusterError, match="evil has no clusterId, and the cluster that answers, c1, is cluster prod"):
        evil(ClusterIdentity(id="c1"))
    assert evil(ClusterIdentity(id="c2")) == {}
