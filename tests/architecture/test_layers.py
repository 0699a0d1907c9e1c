"""Who may import whom: layers by import-linter, and by the graph that it uses public names and the homes of libraries."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

import reconciler

ROOT = Path(__file__).parents[2]
PACKAGE = Path(reconciler.__file__).parent
LAYERS = next(
    contract["layers"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    if contract["name"] == "layers"
)
FACES = sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli", "features"})
HOMES = re.compile(r"^\| (?P<libraries>[a-z].*?) \| (?P<homes>`.*?) ?(?:\(.*\) )?\|$", re.MULTILINE)
"""A row of the table *Each library has one home* in CONTRIBUTING.md."""


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("reconciler", include_external_packages=True, exclude_type_checking_imports=True)


def homes() -> list[tuple[str, list[str]]]:
    """Each library, and the packages that may import it."""
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("Each library has one home")[2].partition("\n\nimport-linter")[0]
    return [
        (library.split(" (")[0], [f"reconciler.{home.strip('`').replace('/', '.')}" for home in row["homes"].split(", ")])
        for row in HOMES.finditer(table)
        for library in row["libraries"].split(", ")
    ]


def is_inside(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def test_every_import_keeps_to_the_layers():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_has_its_place_in_the_layers():
    placed = {module.strip() for layer in LAYERS for module in layer.split("|")}
    files = {f"reconciler.{path.stem}" for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    packages = {f"reconciler.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}

    assert files | packages == placed


@pytest.mark.parametrize("package", FACES)
def test_a_package_is_imported_by_its_public_names_alone(imports, package):
    face = f"reconciler.{package}"
    past_it = [
        (importer, module)
        for module in imports.find_descendants(face)
        for importer in imports.find_modules_that_directly_import(module)
        if not is_inside(importer, face)
    ]

    assert past_it == []


@pytest.mark.parametrize(("library", "packages"), homes())
def test_a_library_is_imported_in_its_home_alone(imports, library, packages):
    importers = imports.find_modules_that_directly_import(library)

    assert importers
    assert [importer for importer in importers if not any(is_inside(importer, package) for package in packages)] == []


def test_every_library_has_a_home(imports):
    libraries = {name for name in imports.modules if not name.startswith("reconciler")} - set(sys.stdlib_module_names)

    assert libraries == {library for library, _ in homes()}


@pytest.mark.parametrize("package", FACES)
def test_every_public_name_is_there_and_is_no_module(package):
    face = importlib.import_module(f"reconciler.{package}")
    modules = {path.stem for path in (PACKAGE / package).iterdir()}

    assert [name for name in face.__all__ if not hasattr(face, name)] == []
    assert modules & set(face.__all__) == set()
