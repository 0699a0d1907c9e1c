"""Computed values beyond plans: in a backtest, for the clusters that a change affects, and for the origin of a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.insight.past_quotas import limit_origin
from reconciler.model.quota import ClusterTotal, QuotaKey
from reconciler.workflows.every_cluster import find_changed_clusters
from reconciler.workflows.git_manifests import manifests_at
from tests.builders import user
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas

MIB = 2.0**20
RATE = QuotaKey.PRODUCER_BYTE_RATE.value


def write(folder: Path, *values: object) -> None:
    entries = [({"user": f"app-{number}"}, {RATE: value}) for number, value in enumerate(values)]
    folder.joinpath("prod.yaml").write_text(cluster())
    folder.joinpath("quotas.yaml").write_text(quotas(*entries))


def test_a_total_that_changes_changes_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = GitRepository(tmp_path / "repository")
    monkeypatch.chdir(made.folder)
    write(made.folder, {"clusterTotal": "40MiB"})
    made.commit()
    (same,) = find_changed_clusters([str(made.folder)], since="HEAD")
    write(made.folder, {"clusterTotal": "41MiB"})
    (other,) = find_changed_clusters([str(made.folder)], since="HEAD")

    assert (same.reasons, other.reasons) == ((), ("quotas",))


def test_the_commit_that_set_a_total_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = GitRepository(tmp_path / "repository")
    monkeypatch.chdir(made.folder)
    write(made.folder, {"clusterTotal": "40MiB"})
    made.commit()
    write(made.folder, {"clusterTotal": "41MiB"})
    made.commit()
    write(made.folder, {"clusterTotal": "41MiB"}, "3MiB")
    made.commit()
    then = manifests_at("HEAD", [str(made.folder)])
    origin = limit_origin(then, [str(made.folder)], cluster="prod", entity=user("app-0"), key=RATE)

    assert origin is not None
    assert origin.commit == made.git("rev-parse", "HEAD~1").strip()
    declared = then.loaded.desired(then.loaded.clusters["prod"]).entities[user("app-0")]
    assert declared.units[QuotaKey.PRODUCER_BYTE_RATE].unit == ClusterTotal(value=41 * MIB)
