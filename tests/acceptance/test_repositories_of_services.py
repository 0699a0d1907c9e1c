"""Quotas beside the services of a monorepo, as the command line reads them: ``include``, and paths of several roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, repository, snapshot

RATE = "producer_byte_rate"
SERVICES = {"quotas/shop/kafka-quotas.yaml": "shop", "quotas/eu/billing/api/kafka-quotas.yaml": "billing"}


def write(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")


@pytest.fixture
def monorepo(tmp_path: Path) -> Path:
    """Two services with quotas, and YAML of other things, some of which is broken."""
    include = ["clusters/*.yaml", "quotas/**/kafka-quotas.yaml"]
    write(tmp_path, "kafka-quotas.yaml", repository(include=include))
    write(tmp_path, "clusters/prod.yaml", cluster("prod"))
    for path, name in SERVICES.items():
        write(tmp_path, path, quotas(({"user": name}, {RATE: "1MiB"})))
    write(tmp_path, "quotas/shop/deployment.yaml", "kind: Deployment\n")
    write(tmp_path, "charts/broken.yaml", "{{ not YAML\n")
    write(tmp_path, "live.json", snapshot({}))
    return tmp_path


def plan(folder: Path, *paths: str) -> Done:
    return invoke("plan", *paths, "--current", str(folder / "live.json"), "--format", "json", cwd=folder)


def users(done: Done) -> set[str]:
    return {change["entity"]["user"] for change in done.json()["changes"]}


def test_a_plan_reads_the_included_files_in_every_depth_and_no_other(monorepo: Path) -> None:
    done = plan(monorepo, ".")

    assert done.code == 0, done.err
    assert users(done) == set(SERVICES.values())
    assert "broken.yaml" not in done.out + done.err
    valid = invoke("validate", ".", "--format", "json", cwd=monorepo)
    assert (valid.code, valid.json()["findings"]) == (0, [])


def test_paths_of_several_roots_are_refused_with_their_names(tmp_path: Path) -> None:
    for team in ("a", "b"):
        write(tmp_path, f"{team}/kafka-quotas.yaml", repository())
        write(tmp_path, f"{team}/prod.yaml", cluster("prod"))
        write(tmp_path, f"{team}/quotas.yaml", quotas(({"user": team}, {RATE: "1MiB"})))
    write(tmp_path, "live.json", snapshot({}))

    for paths in (("a", "b"), ("b/quotas.yaml", "a")):
        done = plan(tmp_path, *paths)
        assert (done.code, done.out) == (64, "")
        assert "the paths belong to different roots" in done.err
        assert "include" in done.err
    assert users(plan(tmp_path, "a")) == {"a"}
