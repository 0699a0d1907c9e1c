"""``kafka-quotas import`` as a user runs it: files, stdout, stderr, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command import invoke

HEAD = "apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuota\n"
GOOD = HEAD + "spec: {type: USER, entity: {user: alice}, configs: {producerByteRate: 10485760}}\n---\n"
BAD = HEAD + "spec: {type: USER, entity: {user: app}, configs: {producerRate: 1}}\n---\n"
COMMAND = ("import", "--from", "jikkou", "quotas.yaml", "--folder", "quotas")
KAFKA_USER = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: NAME, namespace: NAMESPACE, labels: {strimzi.io/cluster: eu west}}
spec: {quotas: {producerByteRate: 1048576}}
---
"""


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.yaml")} if folder.exists() else set()


def test_what_can_be_converted_whole_is_written_and_validates(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(GOOD)

    done = invoke(*COMMAND, cwd=tmp_path)

    assert (done.code, done.err) == (0, "")
    assert done.out == "Wrote 1 entity of 1 file to quotas:\n  users.yaml\n"
    text = (tmp_path / "quotas" / "users.yaml").read_text()
    assert "# Written by kafka-quotas import, from files of jikkou." in text
    assert "- match: {user: alice}\n      quotas: {producer_byte_rate: 10MiB}" in text
    assert "clusters:" not in text
    assert invoke("validate", "quotas", cwd=tmp_path).code == 0


def test_one_thing_that_cannot_be_converted_stops_all_and_partial_writes_the_rest(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(GOOD + BAD)

    stopped = invoke(*COMMAND, cwd=tmp_path)

    assert stopped.code == 1
    assert "quotas.yaml:7:65: error:" in stopped.out
    assert "write what could be (1 entity) with --partial" in stopped.out
    assert not (tmp_path / "quotas").exists()
    partial = invoke(*COMMAND, "--partial", cwd=tmp_path)
    assert partial.code == 0
    assert "[import-unsupported]" in partial.out
    assert "1 thing could not be converted. These manifests lack that." in partial.out
    assert files(tmp_path / "quotas") == {"users.yaml"}


def test_a_file_that_is_not_there_stops_a_partial_import_too(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(GOOD)

    done = invoke("import", "--from", "jikkou", "quotas.yaml", "more.yaml", "--folder", "q", "--partial", cwd=tmp_path)

    assert done.code == 1
    assert "[file-not-found]" in done.out
    assert "--partial" not in done.out
    assert not (tmp_path / "q").exists()


def test_a_folder_with_something_in_it_is_refused_and_overwriting_touches_only_earlier_imports(tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text(GOOD)
    assert invoke(*COMMAND, cwd=tmp_path).code == 0
    (tmp_path / "quotas" / "mine.yaml").write_text("# mine\n")
    (tmp_path / "quotas" / "exported.yaml").write_text("# Written by kafka-quotas export.\n")

    refused = invoke(*COMMAND, cwd=tmp_path)
    (tmp_path / "quotas.yaml").write_text(GOOD.replace("USER", "CLIENT").replace("user:", "clientId:"))
    again = invoke(*COMMAND, "--overwrite", cwd=tmp_path)

    assert refused.code == 1
    assert "--overwrite" in refused.err
    assert again.code == 0
    assert files(tmp_path / "quotas") == {"client-ids.yaml", "mine.yaml", "exported.yaml"}


def test_clusters_that_a_file_names_get_documents_that_never_prune(tmp_path: Path) -> None:
    users = [KAFKA_USER.replace("NAMESPACE", space).replace("NAME", "a") for space in ("blue", "green")]
    (tmp_path / "users.yaml").write_text("".join(users))

    done = invoke("import", "--from", "strimzi", "users.yaml", "--folder", "quotas", cwd=tmp_path)

    assert done.code == 0, done.out
    assert files(tmp_path / "quotas") == {
        "blue-eu-west-cluster.yaml", "blue-eu-west-users.yaml", "green-eu-west-cluster.yaml", "green-eu-west-users.yaml",
    }  # fmt: skip
    assert "prune: never" in (tmp_path / "quotas" / "green-eu-west-cluster.yaml").read_text()
    checked = invoke("validate", "quotas", "--format", "json", cwd=tmp_path).json()
    assert checked["summary"] | {"files": 0} == {"error": 0, "warning": 0, "info": 0, "files": 0, "clusters": 2, "entities": 1}


def test_odd_names_are_kept_and_mentioned_and_impossible_ones_refused(tmp_path: Path) -> None:
    addresses = []
    for name in ("gateway.example", "10.0.0.0/24"):
        values = {"entity_type": "ip", "entity_name": name, "config": {"connection_creation_rate": 5}}
        addresses.append({"mode": "managed", "type": "kafka_quota", "name": "q", "instances": [{"attributes": values}]})
    users = {"entity_type": "user", "entity_name": "User:alice", "config": {"producer_byte_rate": 5}}
    addresses.append({"mode": "managed", "type": "kafka_quota", "name": "u", "instances": [{"attributes": users}]})
    document = {"version": 4, "resources": addresses}
    (tmp_path / "state.json").write_text(json.dumps(document, indent=0))

    done = invoke("import", "--from", "terraform", "state.json", "--folder", "quotas", "--partial", cwd=tmp_path)

    assert re.search(r"state.json:\d+:\d+: warning:.*\[user-prefix\]", done.out)
    assert re.search(r"state.json:\d+:\d+: error:.*\[ip-invalid\]", done.out)
    assert files(tmp_path / "quotas") == {"users.yaml", "ips.yaml", "kafka-quotas.yaml"}
    assert "User:alice" in (tmp_path / "quotas" / "users.yaml").read_text()
    assert invoke("validate", "quotas", cwd=tmp_path).code == 0


@pytest.mark.parametrize("arguments", [("--from", "pulumi", "x", "--folder", "q"), ("x", "--folder", "q"), ("--from", "jikkou")])
def test_wrong_usage_exits_with_64(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert invoke("import", *arguments, cwd=tmp_path).code == 64
