"""``include`` of the Repository manifest: quotas beside the services of a monorepo, whose other YAML is not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests
from tests.builders import user
from tests.support.manifests import cluster, quotas, repository

RATE = "producer_byte_rate"


def write(folder: Path, path: str, text: str) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


@pytest.fixture
def monorepo(tmp_path: Path) -> Path:
    include = ["platform/clusters/**", "services/**/kafka-quotas.yaml", "./quotas/*.yaml"]
    write(tmp_path, "kafka-quotas.yaml", repository(include=include))
    write(tmp_path, "platform/clusters/prod.yaml", cluster("prod"))
    for place, name in (
        ("services/shop/kafka-quotas.yaml", "shop"),
        ("services/a/b/kafka-quotas.yaml", "deep"),
        ("quotas/x.yaml", "x"),
    ):
        write(tmp_path, place, quotas(({"user": name}, {RATE: 1})))
    write(tmp_path, "services/shop/deployment.yaml", "kind: Deployment\n")
    write(tmp_path, "quotas/inner/y.yaml", "kind: Other\n")
    write(tmp_path, "charts/values.yaml", "replicas: 1\n")
    return tmp_path


def names(loaded: LoadedManifests) -> set[str]:
    _, desired, _ = desired_for(loaded, "prod")
    return {str(entity) for entity in desired.entities}


def test_only_included_files_are_read(monorepo: Path) -> None:
    loaded = load_manifests([str(monorepo)])
    assert loaded.findings == ()
    assert names(loaded) == {"user=shop", "user=deep", "user=x"}
    assert loaded.complete


def test_a_service_is_planned_alone_by_its_folder(monorepo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(monorepo / "services" / "shop")
    loaded = load_manifests(["."])
    _, desired, _ = desired_for(loaded, "prod")
    assert (set(desired.entities), desired.complete) == ({user("shop")}, False)


def test_folders_that_can_have_no_included_file_are_not_entered(monorepo: Path) -> None:
    loop = monorepo / "charts" / "loop"
    loop.symlink_to(monorepo / "charts", target_is_directory=True)
    (monorepo / "node_modules").symlink_to("/", target_is_directory=True)
    assert load_manifests([str(monorepo)]).findings == ()
    write(monorepo, "kafka-quotas.yaml", repository(exclude=["services/*/deployment.yaml", "quotas/inner", "charts/*.yaml"]))
    assert {finding.id for finding in load_manifests([str(monorepo)]).findings} >= {"link-out-of-tree", "symlink-loop"}


def test_an_excluded_file_is_not_included(monorepo: Path) -> None:
    write(monorepo, "kafka-quotas.yaml", repository(include=["platform", "services"], exclude=["services/shop"]))
    assert names(load_manifests([str(monorepo)])) == {"user=deep"}
