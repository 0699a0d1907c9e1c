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


@pytest.mark.parametrize(
    ("file", "old", "new", "rule"),
    [
        (PAYMENTS, "{producer_byte_rate: 20MiB", "{producer_byte_rate: 201MiB", "above-limit"),
        (PAYMENTS, "{producer_byte_rate: 2MiB", "{producer_byte_rate: 2KiB", "below-limit"),
        (PAYMENTS, ", owner: team-payments", "", "missing-owner"),
        (PAYMENTS, "owner: team-payments", "owner: team-platform", "outside-owner-paths"),
        (PAYMENTS, "user: payments-api", "user: other", "outside-owner-entities"),
        (PLATFORM, "user: reporting", "user: payments-new", "foreign-entity"),
        (PLATFORM, "user: reporting", "user: mirror-eu", "outside-scope"),
        (PLATFORM, "stage: prod", "stage: prd", "no-cluster-matches"),
        ("clusters/prod-eu.yaml", "timeZone: Europe/Berlin", "timeZone: Europe/Berln", "invalid-freeze-window"),
        ("clusters/prod-eu.yaml", "{prefix: mirror-}", '{regex: "(mirror"}', "invalid-selector"),
    ],
)
def test_every_way_past_its_rules_is_found(copied: Path, file: str, old: str, new: str, rule: str) -> None:
    path = copied / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert rule in ids(copied)


def test_the_manual_lists_every_guard() -> None:
    manual = (ROOT / "docs" / "guards.md").read_text(encoding="utf-8")
    assert [guard_id for guard_id in GUARDS if f"\n| `{guard_id}` |" not in manual] == []
