"""Each feature is one folder: the core works without it, no other feature needs it, and its folder brings it back."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import grimp
import pytest

from reconciler.hooks import added
from tests.support.command import Done
from tests.support.manifests import PLAIN_CLUSTER, PLAIN_QUOTAS, snapshot

ROOT = Path(__file__).parents[2]
FEATURES = tuple(sorted(path.parent.name for path in (ROOT / "reconciler/features").glob("*/__init__.py")))
HELP = ("--help",)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package in it."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "reconciler", folder / "reconciler")
    for beside in ("schemas", "docs"):
        shutil.copytree(ROOT / beside, folder / beside)
    return folder


@pytest.fixture(scope="module")
def all_commands(package: Path) -> Iterator[set[str]]:
    """The commands with all features, which are there again when each of them was away."""
    commands = listed(*run(package, HELP))
    yield commands
    assert listed(*run(package, HELP)) == commands


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    (tmp_path / "quotas.yaml").write_text(PLAIN_QUOTAS, "utf-8")
    (tmp_path / "cluster.yaml").write_text(PLAIN_CLUSTER, "utf-8")
    (tmp_path / "now.json").write_text(snapshot({}), "utf-8")
    return tmp_path


PROGRAM = """
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[1])
from reconciler.cli.main import main
for arguments in json.loads(sys.argv[2]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = leaving.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def run(package: Path, *commands: Sequence[str]) -> list[Done]:
    """Commands of the copy, one after another in a process of their own."""
    program = [sys.executable, "-c", PROGRAM, str(package), json.dumps(commands)]
    done = subprocess.run(program, cwd=package, env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, check=True)
    return [Done(code=code, out=out, err=err) for code, out, err in map(json.loads, done.stdout.splitlines())]


def listed(helped: Done) -> set[str]:
    """The commands in the help."""
    assert helped.code == 0, helped.err
    return {line.split()[0] for line in helped.out.splitlines() if line.startswith("  ") and line[2:3].isalpha()}


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
        plan = ("plan", str(manifests), "--cluster", "c1", "--current", str(manifests / "now.json"))
        helped, planned = run(package, HELP, plan)
    finally:
        away.rename(features)

    assert "1 to create" in planned.out, planned.err
    assert all_commands - listed(helped) == {command.name for command in added("COMMANDS") if " " not in command.name}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_goes_and_comes_with_its_folder(feature: str, package: Path, manifests: Path, all_commands: set[str]) -> None:
    gone = [name for name in FEATURES if name == feature or feature in needs(name)]
    hooks = [importlib.import_module(f"reconciler.features.{name}") for name in gone]
    commands = (command for module in hooks for command in vars(module).get("COMMANDS", ()))
    own = {command.name for command in commands if " " not in command.name}  # not the actions of a command
    folder = package / "reconciler/features" / feature
    away = folder.rename(package / feature)
    try:
        helped, checked, explained = run(package, HELP, ("validate", str(manifests)), ("explain",))
    finally:
        away.rename(folder)

    assert checked.code == 0, checked.err
    assert explained.code == 0, explained.err
    assert own <= all_commands
    assert listed(helped) == all_commands - own


def test_the_feature_of_the_guide_for_contributors_works_as_it_stands(package: Path, manifests: Path) -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    files = re.findall(r"`(reconciler/features/counting/\w+\.py)`[^\n]*:\n\n```python\n(.*?)```", guide, re.DOTALL)
    for name, text in files:
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text, "utf-8")
    try:
        done, helped = run(package, ("count", str(manifests), "--format", "json"), ("count", "--help"))
    finally:
        shutil.rmtree(package / "reconciler/features/counting")

    assert len(files) == 2
    assert sum(text.count("\n") for _, text in files) < 100
    assert done.json() == {"owners": {"no owner": 1}}, done.err
    assert "Count those of a folder" in helped.out
