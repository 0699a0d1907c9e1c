"""The DAGs of deploy/ and examples/, run by a real Airflow that pip fetches into a virtual environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.lake_days import days_in, days_of_parquet
from tests.support.manifests import prod_cluster, quotas

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "airflow"
PACKAGES = ("apache-airflow==3.3.2", "apache-airflow-providers-standard==1.21.0")
PAYMENTS = frozenset({("user", "payments")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Airflow:
    """``programs``: the folder with ``airflow`` and a ``kafka-quotas`` of this checkout."""

    programs: Path

    def run_dag(self, name: str, home: Path, *options: str) -> None:
        """Run the DAG ``name`` of ``home/dags`` once, without a scheduler. Fails when a task does. ``options``: also a date."""
        path = os.pathsep.join((str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]))
        env = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "PATH": path}
        for command in (("db", "migrate"), ("dags", "test", name, *options)):
            done = subprocess.run(
                ["airflow", *command], cwd=home, env=env, capture_output=True, text=True, timeout=900, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    folder = tmp_path_factory.mktemp("airflow")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=300)
    pip = [str(folder / "venv/bin/pip"), "install", "--quiet", "--disable-pip-version-check", *PACKAGES, str(wheel)]
    subprocess.run(pip, check=True, timeout=1200)
    # The tasks of compact use Spark, which only the environment of the tests has.
    (folder / "venv/bin/kafka-quotas").unlink()
    return Airflow(programs=folder / "venv" / "bin")


@pytest.mark.spark
def test_airflow_compacts_the_day_before(airflow: Airflow, tmp_path: Path) -> None:
    days_of_parquet(tmp_path / "traffic", 2)
    (tmp_path / "spark.properties").write_text("spark.sql.shuffle.partitions=2\n")
    own = {"TRAFFIC": f"{tmp_path}/traffic", "OUT": f"file://{tmp_path}/lake", "PROPERTIES": f"{tmp_path}/spark.properties"}
    text = (ROOT / "deploy" / "airflow_compact.py").read_text()
    for name, file in own.items():
        text = re.sub(rf"(?m)^{name} = .*$", f'{name} = "{file}"', text)
    home = tmp_path / "home"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "airflow_compact.py").write_text(text.replace("local[*]", "local[2]"))

    airflow.run_dag("kafka_quotas_compact", home, "2026-11-21")

    assert days_in(tmp_path / "lake") == ["2026-11-20"]


@pytest.mark.kafka
def test_airflow_plans_applies_the_approved_plan_and_finds_no_drift(
    airflow: Airflow, clean_kafka: Sandbox, tmp_path: Path
) -> None:
    repository, home = tmp_path / "quotas", tmp_path / "home"
    repository.mkdir()
    (repository / "cluster.yaml").write_text(prod_cluster(clean_kafka.cluster_id, clean_kafka.bootstrap_servers))
    (repository / "quotas.yaml").write_text(quotas(({"user": "payments"}, {"producer_byte_rate": "16MiB"})))
    shutil.copytree(EXAMPLE, home / "dags")
    tasks = home / "dags" / "quota_tasks.py"
    tasks.write_text(tasks.read_text().replace("/srv/kafka-quotas", str(repository)))

    airflow.run_dag("kafka_quotas", home, "--mark-success-pattern", "approve")

    assert raw_quotas.describe(clean_kafka.bootstrap_servers)[PAYMENTS] == {"producer_byte_rate": 16_777_216.0}
