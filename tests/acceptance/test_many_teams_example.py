"""The example of a repository of many teams: it is valid, and every way past its rules is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconciler.model.cluster import ReductionLimit, VolumeLimit
from reconciler.policy.guards import GUARDS
from reconciler.workflows.load import desired_for, load_manifests
from tests.builders import user
from tests.support.command import invoke

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "many-teams"
PAYMENTS, PLATFORM = "teams/payments/quotas.yaml", "teams/platform/quotas.yaml"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLE, tmp_path / "repository")


def ids(folder: Path) -> list[str]:
    return [one["id"] for one in invoke("validate", "--format", "json", cwd=folder).json()["findings"]]


def test_it_has_no_findings_and_says_what_it_seems_to_say(copied: Path) -> None:
    assert ids(copied) == []
    loaded = load_manifests([str(copied)])
    spec, prod, _ = desired_for(loaded, "prod-eu")
    _, dev, _ = desired_for(loaded, "dev-eu")
    assert (user("reporting") in prod.entities, user("reporting") in dev.entities) == (True, False)
    assert dev.values()[user("payments-api")]["producer_byte_rate"] == 2 * 1024**2
    assert spec.safety.guards.too_many_removals == VolumeLimit(percent=5.0, count=3, minimum=5)
    assert spec.safety.guards.large_reduction == ReductionLimit(factor=0.5, keys={"request_percentage": 0.8})
    assert len(spec.safety.freeze) == 2
    assert not spec.scope.contains(user("mirror-eu"))


def test_the_manual_lists_every_guard() -> None:
    manual = (ROOT / "docs" / "guards.md").read_text(encoding="utf-8")
    assert [guard_id for guard_id in GUARDS if f"\n| `{guard_id}` |" not in manual] == []
