"""Thirty clusters and twenty teams in one repository: right for each cluster, and no more work than there is to do."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from reconciler.model.entity import Entity
from reconciler.model.quota import QuotaKey
from reconciler.workflows.load import LoadedManifests, desired_for, load_manifests
from tests.builders import user
from tests.support.many_clusters import labels_of, write_repository

RATE, PERCENT = QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.REQUEST_PERCENTAGE
MIB = 1024.0**2


def calls_of(work: Callable[[], object]) -> Counter[str]:
    """How often each Python function was called: the same on every machine, however busy."""
    seen: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def all_desired(loaded: LoadedManifests) -> None:
    for name in loaded.clusters:
        desired_for(loaded, name)


def test_every_cluster_has_what_is_meant_for_it(tmp_path: Path) -> None:
    loaded = load_manifests([str(write_repository(tmp_path))])
    assert (len(loaded.clusters), len(loaded.documents), loaded.findings) == (30, 60, ())
    for number in range(30):
        region, tier = labels_of(number)
        spec, state, findings = desired_for(loaded, f"c{number}")
        wanted: set[Entity] = {user(f"t{team}-{n}") for team in range(20) for n in range(4)}
        wanted |= {user(f"t{team}-gold") for team in range(20) if tier == "gold"}
        wanted |= {user(f"t{number}-one")} if number < 20 else set()
        assert (set(state.entities), findings, spec.name) == (wanted, (), f"c{number}")
        special = (region, tier) == ("us", "gold")
        values = {key: quota.value for key, quota in state.entities[user("t3-1")].quotas.items()}
        assert values == ({RATE: 50 * MIB} if special else {RATE: MIB, PERCENT: 200.0})


@pytest.mark.bulk
def test_the_work_grows_with_the_teams_and_with_the_clusters_and_not_faster(tmp_path: Path) -> None:
    def work(name: str, **size: int) -> tuple[int, int]:
        """Calls to load everything, and to see it for every cluster."""
        root = str(write_repository(tmp_path / name, **size))
        load_manifests([root])
        loading = calls_of(lambda: load_manifests([root])).total()
        loaded = load_manifests([root])
        return loading, calls_of(lambda: all_desired(loaded)).total()

    small, more_teams, more_clusters = work("a", teams=10, clusters=15), work("b", teams=20, clusters=15), work("c", teams=10)
    assert more_teams[0] < 2.1 * small[0]
    assert more_teams[1] < 2.1 * small[1]
    assert more_clusters[0] < 2.1 * small[0]
    assert more_clusters[1] < 2.1 * small[1]
