"""The import rules hold, and they cover every package there is."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import reconciler

ROOT = Path(__file__).parents[2]
PACKAGE = Path(reconciler.__file__).parent
CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
HOMES = {
    "pyspark stays in traffic": {"reconciler.traffic"},
    "kafka-python stays in the broker backend and the sandbox": {"reconciler.backends", "reconciler.sandbox"},
    "JSON Schema stays in formats": {"reconciler.formats"},
    "PyYAML stays in yaml": {"reconciler.yaml"},
    "GitHub and HTTP stay in integrations": {"reconciler.integrations"},
    "prometheus-client stays in integrations": {"reconciler.integrations"},
    "google-re2 stays in model": {"reconciler.model"},
    "gssapi stays in the security of backends": {"reconciler.backends"},
    "botocore and PyJWT stay in the broker backend": {"reconciler.backends"},
}
"""For each rule about a library, the packages that may use it."""


def top_level_modules() -> set[str]:
    files = {f"reconciler.{path.stem}" for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    return files | {f"reconciler.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}


def test_every_import_keeps_to_the_rules():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_has_its_place_in_the_layers():
    placed = {module.strip() for layer in CONTRACTS["layers"]["layers"] for module in layer.split("|")}

    assert top_level_modules() - placed == set()


def test_every_package_is_imported_by_its_public_names_alone():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli"}
    rules = {name: contract for name, contract in CONTRACTS.items() if contract["type"] == "protected"}

    assert {rule["allowed_importers"][0]: rule["protected_modules"] for rule in rules.values()} == {
        f"reconciler.{package}": [f"reconciler.{package}.*"] for package in packages
    }


@pytest.mark.parametrize("package", sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli"}))
def test_every_public_name_is_there_and_is_no_module(package):
    face = importlib.import_module(f"reconciler.{package}")
    modules = {path.stem for path in (PACKAGE / package).iterdir()}

    assert [name for name in face.__all__ if not hasattr(face, name)] == []
    assert modules & set(face.__all__) == set()


@pytest.mark.parametrize("name", HOMES)
def test_a_rule_about_a_library_names_every_package_but_its_home(name):
    named = set(CONTRACTS[name]["source_modules"])

    assert top_level_modules() - named - HOMES[name] == set()


def test_no_backend_but_the_broker_may_use_kafka_python():
    named = CONTRACTS["kafka-python stays in the broker backend and the sandbox"]["source_modules"]
    backends = {path.name.removesuffix(".py") for path in (PACKAGE / "backends").iterdir()}

    assert {f"reconciler.backends.{name}" for name in backends - {"__init__", "__pycache__", "broker"}} <= set(named)
