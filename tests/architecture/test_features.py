"""Each feature is one folder: the core works without it, no other feature needs it, and its folder brings it back."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from reconciler.hooks import added
from tests.support.manifests import PLAIN_CLUSTER, PLAIN_QUOTAS, snapshot

ROOT = Path(__file__).parents[2]
FEATURES = tuple(sorted(path.parent.name for path in (ROOT / "reconciler/features").glob("*/__init__.py")))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package in it."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "reconciler", folder / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    for beside in ("schemas", "docs"):
        shutil.copytree(ROOT / beside, folder / beside)
    return folder


@pytest.fixture(scope="module")
def all_commands(package: Path) -> Iterator[set[str]]:
    """The commands with all features, which are there again when each of them was away."""
    commands = listed(package)
    yield commands
    assert listed(package) == commands


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    (tmp_path / "quotas.yaml").write_text(PLAIN_QUOTAS, "utf-8")
    (tmp_path / "cluster.yaml").write_text(PLAIN_CLUSTER, "utf-8")
    (tmp_path / "now.json").write_text(snapshot({}), "utf-8")
    return tmp_path


def run(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command of the copy."""
    program = f"import sys; sys.path.insert(0, {str(package)!r}); from reconciler.cli.main import main; sys.exit(main())"
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=package, env=environment, capture_output=True, text=True, check=False
    )


def listed(package: Path) -> set[str]:
    """The commands in the help."""
    done = run(package, "--help")
    assert done.returncode == 0, done.stderr
    return {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2:3].isalpha()}


def needs(feature: str) -> tuple[str, ...]:
    """The features that a feature names, and those that they name."""
    named = vars(importlib.import_module(f"reconciler.features.{feature}")).get("NEEDS", ())
    return tuple(dict.fromkeys(each for name in named for each in (name, *needs(name))))


def test_a_feature_imports_only_features_that_it_names() -> None:
    graph = grimp.build_graph("reconciler", exclude_type_checking_imports=True)
    of = {module: name for name in FEATURES for module in graph.find_descendants(f"reconciler.features.{name}")}
    crossing = [
        (importer, module)
        for module, name in of.items()
        for importer in graph.find_modules_that_directly_import(module)
        if (own := of.get(importer, name)) != name and name not in needs(own)
    ]

    assert len(of) > len(FEATURES)
    assert crossing == []
    assert not any(name in needs(name) for name in FEATURES)


def test_plans_are_made_without_any_feature(package: Path, manifests: Path, all_commands: set[str]) -> None:
    features = package / "reconciler/features"
    away = features.rename(package / "away")
    try:
        without = listed(package)
        planned = run(package, "plan", str(manifests), "--cluster", "c1", "--current", str(manifests / "now.json"))
    finally:
        away.rename(features)

    assert "1 to create" in planned.stdout, planned.stderr
    assert all_commands - without == {command.name for command in added("COMMANDS") if " " not in command.name}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_goes_and_comes_with_its_folder(feature: str, package: Path, manifests: Path, all_commands: set[str]) -> None:
    gone = [name for name in FEATURES if name == feature or feature in needs(name)]
    hooks = [importlib.import_module(f"reconciler.features.{name}") for name in gone]
    commands = (command for module in hooks for command in vars(module).get("COMMANDS", ()))
    own = {command.name for command in commands if " " not in command.name}  # not the actions of a command
    folder = package / "reconciler/features" / feature
    away = folder.rename(package / feature)
    try:
        without = listed(package)
        checked = run(package, "validate", str(manifests))
        explained = run(package, "explain")
    finally:
        away.rename(folder)

    assert checked.returncode == 0, checked.stderr
    assert explained.returncode == 0, explained.stderr
    assert own <= all_commands
    assert without == all_commands - own


def test_the_feature_of_the_guide_for_contributors_works_as_it_stands(package: Path, manifests: Path) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    files = re.findall(r"`(reconciler/features/counting/\w+\.py)`[^\n]*:\n\n```python\n(.*?)```", guide, re.DOTALL)
    for name, text in files:
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text, "utf-8")
    try:
        done = run(package, "count", str(manifests), "--format", "json")
        helped = run(package, "count", "--help")
    finally:
        shutil.rmtree(package / "reconciler/features/counting")

    assert len(files) == 2
    assert sum(text.count("\n") for _, text in files) < 100
    assert json.loads(done.stdout) == {"owners": {"no owner": 1}}, done.stderr
    assert "Count those of a folder" in helped.stdout
