"""The built wheel: what is in it, and that it works beside nothing but its declared dependencies."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.architecture.test_pins import needed_by
from tests.support.manifests import PLAIN_QUOTAS

ROOT = Path(__file__).parents[2]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
MOVED_INTO_THE_PACKAGE = BUILD["force-include"]
"""Folders at the top of the repository that are data at run time, and where the wheel has them."""

PARTS_OF_THE_BUILD = ["pyproject.toml", "README.md", "LICENSE", "docs", "reconciler", *MOVED_INTO_THE_PACKAGE]
BUILDER = (sys.executable, "-m", "hatchling", "build")
SCRIPT = """
from reconciler.client import DEFAULT, NAMED, ApplyReport, KeyAnswer, PlannedChange, connect, entity, manifests, matching, to_json
from reconciler.errors import NotAppliedError

def lower(server: str) -> ApplyReport | None:
    with connect(server, command_config="client.properties") as quotas:
        for found, values in quotas.describe(matching(user=NAMED, strict=True)).entities.items():
            print(found, values.get("producer_byte_rate", 0.0) / 2)
        answers = quotas.read().answers()
        limit: KeyAnswer | None = answers.answer(entity(user="alice", client_id=DEFAULT)).quotas.get("producer_byte_rate")
        change: PlannedChange = quotas.plan_alter({entity(user="alice"): {"producer_byte_rate": "10MiB"}})
        try:
            return change.apply(accept=["large-reduction"])
        except NotAppliedError as error:
            return error.report if limit is not None and limit.level < 8 else None

text = to_json(manifests(["quotas"], snapshot="now.json").plan().plan)
"""
"""What a user may write, with types everywhere."""


def run(*command: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing of this environment's Python settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy of the sources without the network, and the sdist beside it."""
    source = tmp_path_factory.mktemp("source")
    for name in PARTS_OF_THE_BUILD:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    run(*BUILDER, "-d", "dist", cwd=source)
    (built,) = (source / "dist").glob("*.whl")
    return built


def test_the_sdist_is_the_same_from_another_folder_and_makes_the_same_wheel(wheel, tmp_path):
    other, unpacked = tmp_path / "other", tmp_path / "unpacked"
    run("sh", "-c", "umask 077 && cp -r $0 $1 && rm -r $1/dist", wheel.parents[1], other, cwd=tmp_path)
    run(*BUILDER, "-t", "sdist", "-d", tmp_path / "second", cwd=other)
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    run(*BUILDER, "-t", "wheel", "-d", tmp_path / "second", cwd=next(unpacked.iterdir()))

    second = {path.name: path.read_bytes() for path in (tmp_path / "second").iterdir()}
    assert second == {wheel.name: wheel.read_bytes(), sdist.name: sdist.read_bytes()}


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The ``bin`` folder of a new virtual environment with the wheel and its declared dependencies, copied from this one."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--no-compile", wheel, cwd=home)
    (site,) = home.glob("lib/python*/site-packages")
    (ours,) = (path.parent.name for path in site.glob("*.dist-info/METADATA"))
    (described,) = metadata.distributions(path=[str(site)])
    for name in needed_by([Requirement(text) for text in described.requires or []]):
        for file in metadata.distribution(name).files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), site / file)
    assert ours.startswith("kafka_quota_reconciler-")
    return home / "bin"


def test_the_wheel_holds_the_files_of_the_package_and_nothing_else(wheel):
    """Modules, what pages are made of, the data of the repository's top folders, and the pages of the documentation."""
    package = (path for path in (ROOT / "reconciler").rglob("*") if path.is_file() and path.suffix != ".pyc")
    expected = {str(path.relative_to(ROOT)) for path in package}
    expected |= {f"reconciler/docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    for folder, inside in MOVED_INTO_THE_PACKAGE.items():
        moved = {f"{inside}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob("*") if path.is_file()}
        assert moved
        expected |= moved
    names = zipfile.ZipFile(wheel).namelist()

    assert {"reconciler/py.typed", "reconciler/schemas/plan.v1.schema.json"} <= expected
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_the_base_install_brings_no_spark(wheel, installed):
    (site,) = installed.parent.glob("lib/python*/site-packages")

    assert (site / "yaml").is_dir()
    assert not any((site / name).exists() for name in ("pyspark", "pandas", "pyarrow", "numpy"))


def test_the_installed_command_validates_a_manifest_with_the_schemas_it_brought(installed, tmp_path):
    (tmp_path / "good.yaml").write_text(PLAIN_QUOTAS, encoding="utf-8")
    (tmp_path / "bad.yaml").write_text(PLAIN_QUOTAS.replace("producer_byte_rate", "producer_bite_rate"), encoding="utf-8")

    run(installed / "kafka-quotas", "validate", "good.yaml", cwd=tmp_path)
    refused = run(installed / "kafka-quotas", "validate", "bad.yaml", cwd=tmp_path, check=False)

    assert refused.returncode == 1
    assert "producer_bite_rate" in refused.stdout


def test_the_installed_command_makes_a_repository_of_the_template_it_brought(installed, tmp_path):
    run(installed / "kafka-quotas", "init", "repository", cwd=tmp_path)
    run(installed / "kafka-quotas", "validate", "repository", cwd=tmp_path)

    assert (tmp_path / "repository" / ".github" / "workflows" / "quotas-apply.yml").is_file()


def test_a_script_over_the_python_interface_is_type_checked_by_its_user(installed, tmp_path):
    wrong = SCRIPT.replace('plan_alter({entity(user="alice")', 'plan_alter({"alice"')
    (tmp_path / "good.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "bad.py").write_text(f"{wrong}\nimport reconciler.client\nreconciler.client.conect\n", encoding="utf-8")
    settings = ("--strict", "--python-executable", installed / "python", "--cache-dir", tmp_path / "cache")

    done = run(sys.executable, "-m", "mypy", *settings, "good.py", "bad.py", cwd=tmp_path, check=False)

    assert done.returncode == 1, done.stderr
    assert [line for line in done.stdout.splitlines()[:-1] if not line.startswith("bad.py:")] == []
    assert done.stdout.endswith("in 1 file (checked 2 source files)\n")
    assert 'incompatible type "str"' in done.stdout
    assert 'Module has no attribute "conect"' in done.stdout
