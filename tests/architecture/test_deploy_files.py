"""The files in deploy/ fit the code: command lines, pages, metrics and label values, and what an image would be built of."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from prometheus_client import generate_latest

import reconciler
from reconciler.cli.main import build_parser
from reconciler.features.prometheus.exporter_page import exporter_targets
from reconciler.features.service.observers import ServiceMetrics
from reconciler.features.service.passes import PassOutcome, PassResult
from reconciler.workflows.intent import load_intent
from tests.architecture.test_wheel import PARTS_OF_THE_BUILD
from tests.support.airflow_dag import airflow_command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
METRICS = ServiceMetrics(applies=False)
METRICS.count("prod", PassOutcome(result=PassResult.IN_SYNC), failures=0, at=0.0)
EXPOSED = generate_latest(METRICS.registry).decode()
NAMES = frozenset(sample.name for family in METRICS.registry.collect() for sample in family.samples)
NAME = re.compile(r"\bkafka_quotas_[a-z_]+\b")
LABEL = re.compile(r'([a-z_]+)\s*(?:=~|!=|=)\s*"([^"]*)"')
FROM_PROMETHEUS = {"instance", "cluster"}


def kubernetes() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [one for one in kubernetes() if one["kind"] == kind]
    return found


def container() -> dict[str, Any]:
    (one,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(one)


def dockerfile() -> list[list[str]]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text())["groups"]
    return list(group["rules"])


def dashboard() -> dict[str, Any]:
    return dict(json.loads((DEPLOY / "grafana-dashboard.json").read_text()))


def expressions() -> list[str]:
    panels = dashboard()["panels"]
    return [rule["expr"] for rule in rules()] + [target["expr"] for panel in panels for target in panel["targets"]]


def command_lines() -> dict[str, list[str]]:
    (start,) = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "kafka-quotas-run.service").read_text(), re.MULTILINE)
    (command,) = [json.loads(rest) for word, rest in dockerfile() if word == "CMD"]
    return {"systemd": shlex.split(start)[1:], "Dockerfile": command, "Kubernetes": container()["args"]}


@pytest.mark.parametrize("where", ["systemd", "Dockerfile", "Kubernetes"])
def test_the_command_line_is_understood_and_writes_nothing_until_somebody_adds_apply(where: str) -> None:
    args = build_parser("run").parse_args(command_lines()[where])

    assert (args.command, args.apply, args.log_format) == ("run", False, "json")


def test_the_command_lines_of_recorders_are_understood() -> None:
    unit = (DEPLOY / "kafka-quotas-record.service").read_text()
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    pod = yaml.safe_load((DEPLOY / "kubernetes-record.yaml").read_text())["spec"]["template"]["spec"]
    for arguments in (shlex.split(start)[1:], pod["containers"][0]["args"]):
        args = build_parser("record").parse_args(arguments)
        targets = exporter_targets(args.traffic)

        assert (args.command, args.log_format, len(targets)) == ("record", "json", len(args.traffic))
    (folder,) = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]
    assert folder == str(args.folder)


def test_the_job_for_drift_reads_the_manifests_and_fails_on_drift() -> None:
    job = yaml.safe_load((DEPLOY / "kubernetes-drift.yaml").read_text())["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    args = build_parser("drift").parse_args(pod["containers"][0]["args"])

    assert (args.paths, args.detailed_exitcode, job["backoffLimit"]) == (["/manifests"], True, 0)
    assert pod["volumes"] == of_kind("Deployment")["spec"]["template"]["spec"]["volumes"]


def test_the_values_of_the_chart_fit_its_schema_and_its_version_is_ours() -> None:
    chart = DEPLOY / "helm" / "kafka-quotas"
    schema = json.loads((chart / "values.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for name in ("values.yaml", "ci/example-values.yaml"):
        values = {**yaml.safe_load((chart / "values.yaml").read_text()), **yaml.safe_load((chart / name).read_text())}
        values["run"] = {**yaml.safe_load((chart / "values.yaml").read_text())["run"], **values["run"]}
        check.validate(values)
    assert not check.is_valid({**values, "replicas": 2})
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (reconciler.__version__, reconciler.__version__)


def test_the_image_has_one_base_by_digest_and_only_locked_packages() -> None:
    words = [word for word, _ in dockerfile()]
    (base,) = [text for word, text in dockerfile() if word == "ARG"]
    scripts = [text for word, text in dockerfile() if word == "RUN"]

    assert re.fullmatch(r"BASE=python:3\.\d+-slim-trixie@sha256:[0-9a-f]{64}", base)
    assert [text.split()[0] for word, text in dockerfile() if word == "FROM"] == ["${BASE}", "${BASE}"]
    installs = [part for script in scripts for part in script.split("&&") if " install " in part]
    assert len(installs) == 3
    assert all("--require-hashes" in part or "--no-index" in part for part in installs)
    assert words.index("USER") > len(words) - 5


def test_the_command_lines_of_compact_are_understood() -> None:
    job = yaml.safe_load((DEPLOY / "kubernetes-compact.yaml").read_text())["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    dag = airflow_command()
    for arguments in (job["containers"][0]["args"], dag):
        args = build_parser("compact").parse_args(arguments)
        assert (args.command, args.folder, args.replace) == ("compact", "s3a://lake/quota-seconds", False)
        assert args.properties_file == Path("/etc/kafka-quotas/spark.properties")
    assert job["containers"][0]["volumeMounts"][0]["mountPath"] == "/etc/kafka-quotas"


def test_every_metric_in_rules_and_dashboard_is_one_that_is_exposed() -> None:
    used = {name for expression in expressions() for name in NAME.findall(expression)}

    assert len(used) > 10
    assert used - NAMES == set()


def test_every_label_value_in_rules_and_dashboard_is_one_that_occurs() -> None:
    pairs = {(label, value) for text in expressions() for label, values in LABEL.findall(text) for value in values.split("|")}
    known = set(LABEL.findall(EXPOSED))

    assert ("class", "missing") in pairs
    assert {pair for pair in pairs if pair[0] not in FROM_PROMETHEUS} - known == set()


def test_every_alert_says_how_bad_it_is_and_what_it_means() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) == 8
    assert all(rule["labels"]["severity"] and rule["annotations"]["summary"] for rule in rules())


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    cells = [(x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_probes_and_ports_are_those_that_are_served() -> None:
    args = build_parser("run").parse_args(container()["args"])
    one = container()

    assert [port["containerPort"] for port in one["ports"]] == [args.port]
    assert [port["port"] for port in of_kind("Service")["spec"]["ports"]] == [args.port]
    assert (one["livenessProbe"]["httpGet"]["path"], one["readinessProbe"]["httpGet"]["path"]) == ("/healthz", "/readyz")
    assert args.paths == [next(m["mountPath"] for m in one["volumeMounts"] if m["name"] == "manifests")]


def test_only_one_namespace_reaches_the_port_of_exactly_these_pods() -> None:
    policy = of_kind("NetworkPolicy")["spec"]
    (rule,) = policy["ingress"]

    assert policy["podSelector"] == of_kind("Deployment")["spec"]["selector"]
    assert policy["policyTypes"] == ["Ingress"]
    assert [port["port"] for port in rule["ports"]] == [port["name"] for port in container()["ports"]]
    assert all(one["namespaceSelector"]["matchLabels"] for one in rule["from"])


def test_the_manifests_in_the_config_map_are_good(tmp_path: Path) -> None:
    for name, text in of_kind("ConfigMap")["data"].items():
        (tmp_path / name).write_text(text)

    intent = load_intent([str(tmp_path)], cluster=None)

    assert len(intent.desired.entities) == 1
    secrets = next(m["mountPath"] for m in container()["volumeMounts"] if m["name"] == "client")
    assert intent.spec.connection is not None
    assert intent.spec.connection.properties == f"{secrets}/{next(iter(of_kind('Secret')['stringData']))}"


def test_the_image_is_built_of_all_that_makes_a_wheel() -> None:
    sources = [part.split()[:-1] for word, part in dockerfile() if word == "COPY" and not part.startswith("--from")]
    copied = {source for group in sources for source in group}

    pages = {"docs": "docs/*.md"}
    assert {pages.get(part, part) for part in PARTS_OF_THE_BUILD} <= copied
    assert all(any(ROOT.glob(source)) for source in copied)


def test_the_page_about_run_names_every_metric() -> None:
    page = (ROOT / "docs" / "run.md").read_text()
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in NAMES}

    assert families - set(NAME.findall(page)) == set()
    assert set(NAME.findall(page)) - families == set()
