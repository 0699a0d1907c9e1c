"""The container image, built from the Dockerfile and run as its user with a read-only root, without a container engine."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.container_image import PROGRAMS, ROOT, BuiltImage, build_image
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.polling import wait_until

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltImage]:
    if os.geteuid() != 0:
        pytest.skip("debootstrap needs root")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    assert not missing, f"{missing} are not installed: apt install buildah debootstrap bubblewrap"
    store = tmp_path_factory.mktemp("buildah")
    yield build_image(store)
    shutil.rmtree(store)  # most of a gigabyte


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    reached = {"bootstrapServers": ["127.0.0.1:1"]}
    (folder / "cluster.yaml").write_text(cluster("prod", connection=reached, prune="never"), "utf-8")
    (folder / "quotas.yaml").write_text(quotas(({"user": "payments"}, {"producer_byte_rate": "2MiB"})), "utf-8")
    (folder / "now.json").write_text(snapshot({}), "utf-8")
    return folder


def run_in(image: BuiltImage, *arguments: str, manifests: Path) -> subprocess.CompletedProcess[str]:
    command = image.command(*arguments, manifests=manifests)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_it_runs_as_a_user_without_rights_and_starts_the_service(image: BuiltImage) -> None:
    assert image.config["User"] == "65532:65532"
    assert image.config["Entrypoint"] == ["/opt/kafka-quotas/bin/kafka-quotas"]
    assert image.config["Cmd"][:2] == ["run", "/manifests"]


def test_validate_and_plan_run_with_a_read_only_root(image: BuiltImage, manifests: Path) -> None:
    (manifests / "now.json").chmod(0o644)
    plan = ("plan", "/manifests/cluster.yaml", "/manifests/quotas.yaml", "--current", "/manifests/now.json", "--format", "json")

    validated = run_in(image, "validate", "/manifests", manifests=manifests)
    planned = run_in(image, *plan, manifests=manifests)

    assert validated.returncode == 0, validated.stdout + validated.stderr
    assert planned.returncode == 0, planned.stdout + planned.stderr
    (change,) = json.loads(planned.stdout)["changes"]
    assert change["entity"] == {"user": "payments"}


def test_the_service_answers_its_probe(image: BuiltImage, manifests: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    arguments = [*image.config["Cmd"], "--address", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(image.command(*arguments, manifests=manifests), stderr=subprocess.PIPE, text=True)

    def is_live() -> bool:
        assert process.poll() is None, process.communicate()[1]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    try:
        wait_until(is_live)
    finally:
        process.kill()
        process.communicate()


def test_it_has_the_locked_packages_and_neither_pip_nor_what_built_the_wheel(image: BuiltImage) -> None:
    (site,) = image.root.glob("opt/kafka-quotas/lib/python3.*/site-packages")
    names = {path.name.partition("-")[0] for path in site.glob("*.dist-info")}

    assert {"kafka_quota_reconciler", "prometheus_client", "kafka_python"} <= names
    assert names & {"pip", "hatchling", "setuptools", "pyspark"} == set()
    assert not (image.root / "tools").exists()


def test_the_release_has_a_wheel_an_sdist_and_a_list_of_the_image_s_parts(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=300)
    python = tmp_path / "venv" / "bin" / "python"
    locks = [part for name in ("build", "release") for part in ("-r", str(ROOT / "requirements" / f"{name}.txt"))]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--require-hashes", *locks], check=True, timeout=600)

    script = [str(ROOT / "tools" / "release.sh"), str(tmp_path / "dist")]
    done = subprocess.run(
        script, env={"PYTHON": str(python), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted(str(path.relative_to(tmp_path / "dist")) for path in (tmp_path / "dist").rglob("*") if path.is_file())
    assert [name.rpartition(".")[2] for name in files] == ["SHA256SUMS", "json", "whl", "gz"]
    listed = json.loads((tmp_path / "dist" / "kafka-quotas.cdx.json").read_text("utf-8"))
    parts = {part["name"]: part for part in listed["components"]}
    lock = (ROOT / "requirements" / "image.txt").read_text("utf-8").splitlines()
    assert listed["metadata"]["component"]["name"] == "kafka-quota-reconciler"
    assert set(parts) == {line.split("==")[0] for line in lock if "==" in line}
    assert all(part["purl"].endswith(f"@{part['version']}") for part in parts.values())
