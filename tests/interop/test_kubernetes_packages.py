"""Plain manifests, the Helm chart and the Kustomize base: what they make is what Kubernetes and kafka-quotas take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.main import build_parser
from reconciler.workflows.intent import load_intent

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "kafka-quotas"
EXAMPLE = CHART / "ci" / "example-values.yaml"
PROGRAMS = ("helm.sh/helm/v3/cmd/helm@v3.22.0", "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1")
VALIDATOR = "kubernetes-validate==1.37.0"
Manifests = list[dict[str, Any]]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with helm and kustomize, which Go compiles once: minutes."""
    folder = tmp_path_factory.mktemp("programs")
    for program in PROGRAMS:
        subprocess.run(["go", "install", program], env={**os.environ, "GOBIN": str(folder)}, check=True, timeout=1800)
    return folder


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("validator")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder), VALIDATOR]
    subprocess.run(pip, check=True, timeout=300)
    return folder


def output(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def require_valid(validator: Path, text: str, folder: Path) -> Manifests:
    """The objects of a YAML stream that Kubernetes' schemas take."""
    file = folder / "manifests.yaml"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "kubernetes_validate", "--strict", str(file)]
    env = {**os.environ, "PYTHONPATH": str(validator)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [document for document in yaml.safe_load_all(text) if document]


def one_of(kind: str, manifests: Manifests) -> dict[str, Any]:
    (chosen,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return chosen


def pods(manifests: Manifests) -> dict[str, Mapping[str, Any]]:
    """The pods of the service and of the job, by kind."""
    job = one_of("CronJob", manifests)["spec"]["jobTemplate"]
    return {"run": one_of("Deployment", manifests)["spec"]["template"]["spec"], "drift": job["spec"]["template"]["spec"]}


def require_usable(manifests: Manifests, folder: Path) -> None:
    """Command lines that are understood, quotas that load, volumes and ports that exist, and pods without rights."""
    names = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    for command, pod in pods(manifests).items():
        (container,) = pod["containers"]
        args = build_parser(command).parse_args(container["args"])
        assert args.paths == ["/manifests"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        (mounted,) = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
        assert ("ConfigMap", mounted) in names
    (container,) = pods(manifests)["run"]["containers"]
    port = build_parser("run").parse_args(container["args"]).port
    assert [place["containerPort"] for place in container["ports"]] == [port]
    assert [place["port"] for place in one_of("Service", manifests)["spec"]["ports"]] == [port]
    labels = one_of("Deployment", manifests)["spec"]["template"]["metadata"]["labels"].items()
    assert one_of("Service", manifests)["spec"]["selector"].items() <= labels
    assert one_of("NetworkPolicy", manifests)["spec"]["podSelector"]["matchLabels"].items() <= labels
    quotas = folder / "quotas"
    quotas.mkdir(parents=True)
    for name, text in one_of("ConfigMap", manifests)["data"].items():
        (quotas / name).write_text(text, encoding="utf-8")
    assert load_intent([str(quotas)], cluster=None).desired.entities


def test_the_chart_passes_helm_s_own_linter_and_makes_usable_manifests(programs: Path, validator: Path, tmp_path: Path) -> None:
    output(programs / "helm", "lint", "--strict", CHART, "--values", EXAMPLE)
    manifests = require_valid(validator, output(programs / "helm", "template", "q", CHART, "--values", EXAMPLE), tmp_path)

    require_usable(manifests, tmp_path)
    (container,) = pods(manifests)["run"]["containers"]
    assert "--apply" in container["args"]
    assert container["image"] == "registry.example/platform/kafka-quotas@sha256:" + "0" * 64


@pytest.mark.parametrize("name", ["kubernetes", "kubernetes-drift", "kubernetes-record", "kubernetes-compact"])
def test_kubernetes_takes_the_plain_manifests(validator: Path, tmp_path: Path, name: str) -> None:
    assert require_valid(validator, (ROOT / "deploy" / f"{name}.yaml").read_text("utf-8"), tmp_path)


def test_each_part_of_the_chart_can_be_left_out(programs: Path, validator: Path, tmp_path: Path) -> None:
    baseline = "drift.extraArgs={--baseline=/manifests/baseline.json}"
    least = ["--set", "manifests.existingConfigMap=ours", "--set", "run.enabled=false", "--set", baseline]
    manifests = require_valid(validator, output(programs / "helm", "template", "q", CHART, *least), tmp_path)

    assert [manifest["kind"] for manifest in manifests] == ["CronJob"]
    (container,) = manifests[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/kafka-quotas:0.1.0"
    assert build_parser("drift").parse_args(container["args"]).baseline == "/manifests/baseline.json"
    assert [mount["name"] for mount in container["volumeMounts"]] == ["manifests"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "Set manifests.files, or manifests.existingConfigMap"),
        (["--set", "image.digest=latest"], "image"),
        (["--set", "run.aply=true"], "aply"),
        (["--set", "run.interval=0"], "interval"),
    ],
)
def test_wrong_values_are_refused_with_their_name(programs: Path, settings: list[str], message: str) -> None:
    command = [str(programs / "helm"), "template", "q", str(CHART), *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 1
    assert message in done.stderr


def test_the_overlay_replaces_manifests_login_and_image_of_the_base(programs: Path, validator: Path, tmp_path: Path) -> None:
    base = require_valid(validator, output(programs / "kustomize", "build", ROOT / "deploy"), tmp_path)
    manifests = require_valid(validator, output(programs / "kustomize", "build", ROOT / "examples" / "kustomize"), tmp_path)

    require_usable(base, tmp_path / "base")
    require_usable(manifests, tmp_path / "overlay")
    assert {manifest["metadata"]["namespace"] for manifest in manifests} == {"kafka-quotas"}
    images = {pod["containers"][0]["image"] for pod in pods(manifests).values()}
    assert images == {"registry.example/platform/kafka-quotas@sha256:" + "0" * 64}
    assert one_of("Secret", manifests)["data"].keys() == {"client.properties"}
