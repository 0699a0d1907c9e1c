"""``--all-clusters``: one document for all, one exit code, and a cluster that does not answer stops no other."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.schemas import valid


def documents(done: Done, schema: str) -> dict[str, Any]:
    document = valid(done.json(), schema)
    names = [one["cluster"]["name"] if isinstance(one["cluster"], dict) else one["cluster"] for one in document["clusters"]]
    assert names == sorted(names)
    return dict(zip(names, document["clusters"], strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(cluster("a", connection={"bootstrapServers": [f"127.0.0.1:{refusing_port()}"]}))
    (tmp_path / "b.yaml").write_text(cluster("b", scope={"include": [{"client-id": {"any": True}}]}))
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": 1}), clusters=["a"]))
    return tmp_path


@pytest.mark.parametrize(("command", "schema"), [("plan", "plans"), ("drift", "drifts")])
def test_findings_about_one_cluster_and_silence_of_another_are_both_told(folder: Path, command: str, schema: str) -> None:
    (folder / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": 1})))
    done = invoke(command, "--all-clusters", "--detailed-exitcode", "--format", "json", cwd=folder)
    assert done.code == 1
    found = documents(done, schema)
    assert (found["a"]["errored"], found["a"]["failure_reason"]) == (True, "unreachable")
    assert (found["b"]["errored"], found["b"]["failure_reason"]) == (True, "invalid-manifests")
    assert found["b"]["findings"][0]["id"] == "outside-scope"
    text = invoke(command, "--all-clusters", cwd=folder)
    assert "Cluster a could not be read: " in text.out
    assert "Cluster b could not be read: " in text.out


@pytest.mark.kafka
@pytest.mark.parametrize("command", ["plan", pytest.param("drift", marks=pytest.mark.large)])
def test_clusters_that_hang_end_as_unreachable_and_the_next_one_is_read(
    tmp_path: Path, clean_kafka: Sandbox, command: str
) -> None:
    """As many clusters hang as are read at once. Their servers accept connections and never answer."""
    hanging = 8
    with contextlib.ExitStack() as silent:
        servers = [silent.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(hanging)]
        addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
        for number, address in enumerate((*addresses, clean_kafka.bootstrap_servers)):
            name = f"c{number}"
            (tmp_path / f"{name}.yaml").write_text(cluster(name, connection={"bootstrapServers": [address]}))
        (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": 1})))
        done = invoke(command, "--all-clusters", "--out", "json=all.json", cwd=tmp_path)
    read = {
        each["cluster"]["name"]: each.get("failure_reason")
        for each in json.loads((tmp_path / "all.json").read_text())["clusters"]
    }
    assert read == {**{f"c{number}": "unreachable" for number in range(hanging)}, f"c{hanging}": None}
    assert done.code == 1
