"""The wheel, installed by pip, pipx and uv on each version of Python that this machine has, in environments of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import reconciler
from reconciler.java import find_java
from tests.support.container_image import HOST_FILES, debian
from tests.support.manifests import snapshot

pytestmark = pytest.mark.interop

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")

_OF_DEBIAN: Final = {"3.14": "sid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonProgram:
    """``prefix``: what runs a program where this Python is. ``folder``: what both see under the same path."""

    program: str
    prefix: tuple[str, ...] = ()

    def run(self, *command: str | Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program with nothing of this environment's Python settings. Fails when it does."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        clean |= {"HOME": str(folder), **environment}
        whole = [*(part.replace("FOLDER", str(folder)) for part in self.prefix), *map(str, command)]
        done = subprocess.run(whole, cwd=folder, env=clean, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, f"{whole}\n{done.stdout}{done.stderr}"
        return done


def find_python(version: str) -> PythonProgram | None:
    """``None``: this machine has none, and debootstrap, which needs root, cannot fetch one."""
    own = shutil.which(f"python{version}")
    for program in (own, *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        if program is not None and _works(str(program), version):
            return PythonProgram(program=str(program))
    suite = _OF_DEBIAN.get(version)
    if suite is None or os.geteuid() != 0 or shutil.which("debootstrap") is None or shutil.which("bwrap") is None:
        return None
    root = debian(suite, f"python{version}", f"python{version}-venv")
    java = find_java().resolve().parents[1]
    # Debian keeps the settings of its Java below /etc.
    shared = [*HOST_FILES, str(java), *map(str, Path("/etc").glob("java-*-openjdk"))]
    files = [part for file in shared if Path(file).exists() for part in ("--ro-bind", file, file)]
    mounts = ["--bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", "FOLDER", "FOLDER"]
    prefix = ("bwrap", "--die-with-parent", "--setenv", "JAVA_HOME", str(java), *mounts, *files)
    return PythonProgram(program=f"/usr/bin/python{version}", prefix=prefix)


def _works(program: str, version: str) -> bool:
    """pyenv's programs exist also for versions that are not chosen."""
    done = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 0 and done.stdout.startswith(f"Python {version}.")


ROOT = Path(__file__).parents[2]

RECORDING = ROOT / "tests/traffic/recordings/kafka-4.3.1/kafka-request.log.gz"

SPARKS = {"3.11": "3.5.9", "3.12": "4.0.5", "3.13": "4.3.0", "3.14": "4.3.0"}

"""By version of Python: the oldest, one between, and the newest. Spark runs the Java of this machine."""

JUPYTER = ("nbclient==0.11.0", "ipykernel==7.4.0")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module", params=VERSIONS)
def python(request: pytest.FixtureRequest) -> PythonProgram:
    program = find_python(request.param)
    if program is None:
        pytest.skip(f"this machine has no Python {request.param}, and no root with debootstrap to fetch one")
    return program


@pytest.fixture
def folder(wheel: Path, tmp_path: Path) -> Iterator[Path]:
    """With the wheel, the example of manifests, and a snapshot."""
    shutil.copy(wheel, tmp_path)
    shutil.copytree(ROOT / "examples" / "quickstart", tmp_path / "quickstart")
    (tmp_path / "now.json").write_text(snapshot({}), encoding="utf-8")
    yield tmp_path
    shutil.rmtree(tmp_path)


def installed(installer: str, python: PythonProgram, folder: Path) -> Path:
    """The command that this installer makes of the wheel."""
    (wheel,) = folder.glob("*.whl")
    python.run(python.program, "-m", "venv", folder / "venv", folder=folder)
    programs = folder / "venv" / "bin"
    if installer == "pip":
        python.run(programs / "pip", "install", "--quiet", wheel, folder=folder)
        return programs / "kafka-quotas"
    python.run(programs / "pip", "install", "--quiet", installer, folder=folder)
    bin_folder = folder / "bin"
    if installer == "pipx":
        places = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(bin_folder)}
        python.run(programs / "pipx", "install", "--python", programs / "python", wheel, folder=folder, **places)
    else:
        places = {"UV_TOOL_DIR": str(folder / "uv"), "UV_TOOL_BIN_DIR": str(bin_folder), "UV_CACHE_DIR": str(folder / "cache")}
        python.run(programs / "uv", "tool", "install", "--python", programs / "python", wheel, folder=folder, **places)
    return bin_folder / "kafka-quotas"


@pytest.mark.parametrize("installer", ["pip", "pipx", "uv"])
def test_the_wheel_is_installed_and_plans(python: PythonProgram, installer: str, folder: Path) -> None:
    command = installed(installer, python, folder)

    version = python.run(command, "--version", folder=folder)
    validated = python.run(command, "validate", "quickstart", folder=folder)
    planned = python.run(command, "plan", "quickstart", "--current", "now.json", "--format", "json", folder=folder)
    made = python.run(command, "init", "repository", folder=folder)

    assert version.stdout == f"kafka-quotas {reconciler.__version__}\n"
    assert validated.stdout.startswith("no findings")
    assert len(json.loads(planned.stdout)["changes"]) == 5
    assert "checkout" not in made.stderr
    assert "Replace OWNER/kafka-quotas" in made.stdout


@pytest.mark.spark
@pytest.mark.parametrize("version", SPARKS)
def test_a_backtest_on_spark_is_that_of_one_process(version: str, folder: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}, and no root with debootstrap to fetch one")
    (wheel,) = folder.glob("*.whl")
    python.run(python.program, "-m", "venv", folder / "venv", folder=folder)
    packages = (f"{wheel}[traffic,spark]", f"pyspark=={SPARKS[version]}")
    python.run(folder / "venv/bin/pip", "install", "--quiet", *packages, folder=folder)
    shutil.copy(RECORDING, folder)
    backtest = (folder / "venv/bin/kafka-quotas", "backtest", "quickstart", "--traffic", RECORDING.name, "--format", "json")

    here = json.loads(python.run(*backtest, folder=folder).stdout)
    on_spark = json.loads(python.run(*backtest, "--master", "local[2]", "--conf", "spark.driver.memory=1g", folder=folder).stdout)

    assert here["verdicts"]
    assert on_spark["verdicts"] == here["verdicts"]
    assert on_spark["summary"] == here["summary"]


def test_the_example_notebook_runs_in_jupyter(folder: Path) -> None:
    python = PythonProgram(program=sys.executable)
    (wheel,) = folder.glob("*.whl")
    python.run(python.program, "-m", "venv", folder / "venv", folder=folder)
    python.run(folder / "venv/bin/pip", "install", "--quiet", f"{wheel}[traffic,spark]", *JUPYTER, folder=folder)
    shutil.copytree(ROOT / "examples" / "notebook", folder / "notebook")

    python.run(folder / "venv/bin/jupyter", "execute", "notebook/quotas.ipynb", "--output=shown.ipynb", folder=folder)

    cells = json.loads((folder / "notebook" / "shown.ipynb").read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = ["".join(output["data"]["text/html"]) for output in outputs if output["output_type"] == "execute_result"]
    assert [output["output_type"] for output in outputs if output["output_type"] == "error"] == []
    assert len(shown) == 5
    assert "Plan of cluster quickstart: 4 changes" in shown[0]
    assert "<td>throttled</td><td>user payments</td>" in shown[3]
