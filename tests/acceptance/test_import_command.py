"""``kafka-quotas import`` as a user runs it: files, stdout, stderr, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from reconciler.workflows.import_quotas import TOOLS
from tests.support.command import invoke

ROOT = Path(__file__).parents[2]
GOOD = "kafka-configs.sh --alter --user alice --add-config producer_byte_rate=10485760\n"
BAD = "kafka-configs.sh --alter --user $APP --add-config producer_byte_rate=1\n"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.yaml")} if folder.exists() else set()


def test_what_can_be_converted_whole_is_written_and_validates(tmp_path: Path) -> None:
    (tmp_path / "quotas.sh").write_text(GOOD)

    done = invoke("import", "--from", "kafka-configs", "quotas.sh", "--folder", "quotas", cwd=tmp_path)

    assert (done.code, done.err) == (0, "")
    assert done.out == "Wrote 1 entity of 1 file to quotas:\n  users.yaml\n"
    text = (tmp_path / "quotas" / "users.yaml").read_text()
    assert "# Written by kafka-quotas import, from files of kafka-configs." in text
    assert "- match: {user: alice}\n      quotas: {producer_byte_rate: 10MiB}" in text
    assert "clusters:" not in text
    assert invoke("validate", "quotas", cwd=tmp_path).code == 0


def test_one_thing_that_cannot_be_converted_stops_all_and_partial_writes_the_rest(tmp_path: Path) -> None:
    (tmp_path / "quotas.sh").write_text(GOOD + BAD)
    command = ("import", "--from", "kafka-configs", "quotas.sh", "--folder", "quotas")

    stopped = invoke(*command, cwd=tmp_path)

    assert stopped.code == 1
    assert "quotas.sh:2:33: error:" in stopped.out
    assert "write what could be (1 entity) with --partial" in stopped.out
    assert not (tmp_path / "quotas").exists()
    partial = invoke(*command, "--partial", cwd=tmp_path)
    assert partial.code == 0
    assert "[import-template]" in partial.out
    assert "1 thing could not be converted. These manifests lack that." in partial.out
    assert files(tmp_path / "quotas") == {"users.yaml"}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_without_a_quota_is_never_a_success(tmp_path: Path, tool: str) -> None:
    (tmp_path / "empty").write_text("")

    done = invoke("import", "--from", tool, "empty", "--folder", "quotas", "--partial", cwd=tmp_path)

    assert done.code == 1
    assert "empty:1:1: error:" in done.out
    assert "[import-nothing-found]" in done.out


def test_a_file_that_is_not_there_stops_a_partial_import_too(tmp_path: Path) -> None:
    (tmp_path / "quotas.sh").write_text(GOOD)

    done = invoke("import", "--from", "kafka-configs", "quotas.sh", "more.sh", "--folder", "q", "--partial", cwd=tmp_path)

    assert done.code == 1
    assert "[file-not-found]" in done.out
    assert "--partial" not in done.out
    assert not (tmp_path / "q").exists()


def test_a_folder_with_something_in_it_is_refused_and_overwriting_touches_only_earlier_imports(tmp_path: Path) -> None:
    (tmp_path / "quotas.sh").write_text(GOOD)
    command = ("import", "--from", "kafka-configs", "quotas.sh", "--folder", "quotas")
    assert invoke(*command, cwd=tmp_path).code == 0
    (tmp_path / "quotas" / "mine.yaml").write_text("# mine\n")
    (tmp_path / "quotas" / "exported.yaml").write_text("# Written by kafka-quotas export.\n")

    refused = invoke(*command, cwd=tmp_path)
    (tmp_path / "quotas.sh").write_text(GOOD.replace("--user", "--client"))
    again = invoke(*command, "--overwrite", cwd=tmp_path)

    assert refused.code == 1
    assert "--overwrite" in refused.err
    assert again.code == 0
    assert files(tmp_path / "quotas") == {"client-ids.yaml", "mine.yaml", "exported.yaml"}


def test_clusters_that_a_file_names_get_documents_that_never_prune(tmp_path: Path) -> None:
    (tmp_path / "helmsman.yaml").write_text(
        "kafka: {bootstrap.servers: b1}\nquotas:\n  - principal: <default>\n    producer-byte-rate: 1048576\n"
        "    clusters: {eu west: {}, eu/west: {producer-byte-rate: 2097152}}\n"
    )

    done = invoke("import", "--from", "helmsman", "helmsman.yaml", "--folder", "quotas", cwd=tmp_path)

    assert done.code == 0, done.out
    assert files(tmp_path / "quotas") == {
        "eu-west-cluster.yaml", "eu-west-users.yaml", "eu-west-2-cluster.yaml", "eu-west-2-users.yaml",
    }  # fmt: skip
    assert "prune: never" in (tmp_path / "quotas" / "eu-west-2-cluster.yaml").read_text()
    checked = invoke("validate", "quotas", "--format", "json", cwd=tmp_path).json()
    assert checked["summary"] | {"files": 0} == {"error": 0, "warning": 0, "info": 0, "files": 0, "clusters": 2, "entities": 1}


def test_the_same_entity_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("a.sh", "b.sh"):
        (tmp_path / "scripts" / name).write_text(GOOD + GOOD.replace("alice", name))

    done = invoke("import", "--from", "kafka-configs", "scripts", "--folder", "quotas", "--partial", cwd=tmp_path)

    assert "scripts/b.sh:1:52: error:" in done.out
    assert "[duplicate-entity]\n    scripts/a.sh:1:52: the first one" in done.out
    assert "alice" not in (tmp_path / "quotas" / "users.yaml").read_text()
    assert "a.sh" in (tmp_path / "quotas" / "users.yaml").read_text()


def test_odd_names_are_kept_and_mentioned_and_impossible_ones_refused(tmp_path: Path) -> None:
    (tmp_path / "quotas.sh").write_text(
        GOOD.replace("alice", "User:alice")
        + "kafka-configs.sh --alter --ip gateway.example --add-config connection_creation_rate=5\n"
        "kafka-configs.sh --alter --ip 10.0.0.0/24 --add-config connection_creation_rate=5\n"
    )

    done = invoke("import", "--from", "kafka-configs", "quotas.sh", "--folder", "quotas", "--partial", cwd=tmp_path)

    assert "quotas.sh:1:57: warning:" in done.out
    assert "[user-prefix]" in done.out
    assert "quotas.sh:3:56: error:" in done.out
    assert "[ip-invalid]" in done.out
    assert files(tmp_path / "quotas") == {"users.yaml", "ips.yaml", "kafka-quotas.yaml"}
    assert "User:alice" in (tmp_path / "quotas" / "users.yaml").read_text()
    assert invoke("validate", "quotas", cwd=tmp_path).code == 0


def test_json_keeps_to_the_schema_of_findings_and_counts_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "quotas.sh").write_text(GOOD + BAD)
    command = ("import", "--from", "kafka-configs", "quotas.sh", "--folder", "quotas", "--format", "json")
    schema = json.loads((ROOT / "schemas" / "findings.v1.schema.json").read_text(encoding="utf-8"))

    stopped, partial = invoke(*command, cwd=tmp_path).json(), invoke(*command, "--partial", cwd=tmp_path).json()

    for document in (stopped, partial):
        Draft202012Validator(schema).validate(document)
        assert [(one["id"], one["file"], one["line"]) for one in document["findings"]] == [("import-template", "quotas.sh", 2)]
    assert (stopped["summary"]["files"], stopped["summary"]["entities"]) == (0, 0)
    assert (partial["summary"]["files"], partial["summary"]["entities"]) == (1, 1)


@pytest.mark.parametrize(
    "arguments", [("--from", "pulumi", "x", "--folder", "q"), ("x", "--folder", "q"), ("--from", "jikkou", "x")]
)
def test_wrong_usage_exits_with_64(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert invoke("import", *arguments, cwd=tmp_path).code == 64


def test_without_python_hcl2_a_tf_file_says_what_to_install_and_a_state_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('resource "kafka_quota" "q" {}\n')
    values = {"entity_type": "user", "config": {"producer_byte_rate": 1024}}
    resource = {"address": "kafka_quota.q", "mode": "managed", "type": "kafka_quota", "values": values}
    state = {"format_version": "1.0", "values": {"root_module": {"resources": [resource]}}}
    (tmp_path / "state.json").write_text(json.dumps(state))
    program = "import sys; sys.modules['hcl2'] = None; from reconciler.cli.main import main; sys.exit(main(sys.argv[1:]))"

    def without(file: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, "import", "--from", "terraform", file, "--folder", "quotas"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    refused, read = without("main.tf"), without("state.json")

    assert refused.returncode == 1
    assert "kafka-quota-reconciler[import]" in refused.stderr
    assert read.returncode == 0, read.stderr
