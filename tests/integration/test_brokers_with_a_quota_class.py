"""A broker with a quota class of its own: every command names it, in every format."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.spec import Sandbox
from tests.support.broker_classes import PLUGIN, with_plugin
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.schemas import valid

pytestmark = [pytest.mark.kafka, pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK compiles the class")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with running(with_plugin(tmp_path_factory.mktemp("plugin"))) as sandbox:
        yield sandbox


@pytest.fixture
def folder(broker: Sandbox, tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(cluster(prune="never", connection={"bootstrapServers": [broker.bootstrap_servers]}))
    declare(tmp_path, "500KB")
    return tmp_path


def declare(folder: Path, rate: str) -> None:
    (folder / "quotas.yaml").write_text(quotas(({"user": "svc-a"}, {"producer_byte_rate": rate})))


def run(folder: Path, *arguments: str) -> Done:
    done = invoke(*arguments, cwd=folder)
    assert done.code in (0, 2), done.out + done.err
    return done


def test_a_plan_names_the_class_in_every_format(folder: Path) -> None:
    from reconciler.cli.results import PLAN_FORMATS

    for name in PLAN_FORMATS:
        done = run(folder, "plan", "--format", name)
        # Outputs of a workflow step are counts and digests.
        assert PLUGIN in (done.err if name == "outputs" else done.out), name
    document = run(folder, "plan", "--format", "json").json()
    valid(document, "plan")
    assert document["cluster"]["quota_callback"] == PLUGIN
    assert [one["id"] for one in document["findings"]] == ["quota-callback"]


def test_what_writes_names_the_class_before_and_after(folder: Path, broker: Sandbox) -> None:
    declare(folder, "700KB")
    applied = run(folder, "apply", "--auto-approve", "--report", "report.json")
    assert PLUGIN in applied.out.partition("Applied 1 change")[0]
    assert "[quota-callback]" in applied.err
    assert PLUGIN in applied.out.partition("Applied 1 change")[2]
    report = json.loads((folder / "report.json").read_text())
    valid(report, "apply-report")
    assert report["cluster"]["quota_callback"] == PLUGIN
    where = ("--bootstrap-server", broker.bootstrap_servers)
    assert PLUGIN in run(folder, "revert", "report.json", "--auto-approve", "--accept", "too-many-removals", *where).out
    altered = run(folder, "alter", "--name", "user=by-hand", "--add", "producer_byte_rate=1", "--auto-approve", *where)
    assert PLUGIN in altered.out


def test_what_reads_names_the_class(folder: Path, broker: Sandbox) -> None:
    where = ("--bootstrap-server", broker.bootstrap_servers)
    for form in ("text", "json", "markdown"):
        assert PLUGIN in run(folder, "drift", "--format", form).out, form
    assert PLUGIN in invoke("resolve", "--name", "user=svc-a", *where, cwd=folder).out
    described = run(folder, "describe", *where)
    assert PLUGIN in described.out + described.err
    exported = run(folder, "export", "--snapshot", "snapshot.json", *where)
    assert PLUGIN in exported.out + exported.err
    assert json.loads((folder / "snapshot.json").read_text())["cluster"]["quota_callback"] == PLUGIN
    assert PLUGIN in run(folder, "plan", "--current", "snapshot.json").out
    assert PLUGIN in run(folder, "report", "--format", "html").out
