"""``-v``, ``-vv`` and ``--log-format``: what a command logs on stderr, and that stdout stays the same."""

import json
from pathlib import Path

import pytest

from tests.builders import user
from tests.support.bad_servers import refusing_port
from tests.support.command import run
from tests.support.manifests import PLAIN_QUOTAS, snapshot

PLAN = ("plan", "--current", "now.json", "--format", "json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "payments.yaml").write_text(PLAIN_QUOTAS, encoding="utf-8")
    (tmp_path / "now.json").write_text(snapshot({user("batch"): {"producer_byte_rate": 1.0}}), encoding="utf-8")
    return tmp_path


def test_v_logs_what_was_read_and_decided_and_leaves_stdout_as_it_is(folder: Path) -> None:
    quiet, verbose = run(*PLAN, cwd=folder), run(*PLAN, "-v", cwd=folder)

    assert verbose.code == quiet.code
    assert verbose.json()["digest"] == quiet.json()["digest"]
    lines = verbose.err.splitlines()
    assert any("workflows.load: file read file=" in line and "payments.yaml" in line for line in lines)
    assert any("workflows.plan: plan made" in line and "create=1" in line for line in lines)


def test_a_secret_in_a_properties_file_is_never_logged(folder: Path) -> None:
    (folder / "client.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="hunter2";\n',
        encoding="utf-8",
    )

    done = run(
        "plan", "--bootstrap-server", f"127.0.0.1:{refusing_port()}", "--command-config", "client.properties", "-vv", cwd=folder
    )

    assert done.code == 1
    assert "client.properties" in done.err
    assert "hunter2" not in done.err


def test_names_of_files_cannot_forge_a_line(folder: Path) -> None:
    forged = "a\n12:00:00 info workflows.plan: plan made.yaml"
    (folder / "payments.yaml").rename(folder / forged)

    done = run(*PLAN, "-v", cwd=folder)

    assert len([line for line in done.err.splitlines() if "plan made" in line and line.startswith("12:00:00")]) == 0
    assert "u000a12:00:00" in done.err


@pytest.mark.parametrize("before", [True, False])
def test_options_may_stand_before_and_after_the_command(folder: Path, *, before: bool) -> None:
    options = ("-v", "--log-format", "json")

    done = run(*((*options, *PLAN) if before else (*PLAN, *options)), cwd=folder)

    assert done.code == 0
    records = [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]
    events = {record["event"]: record for record in records}
    assert {"manifests read", "quotas read", "plan made"} <= events.keys()
    made = events["plan made"]
    assert (made["logger"], made["level"], made["create"]) == ("reconciler.workflows.plan", "info", 1)
    assert isinstance(events["manifests read"]["milliseconds"], float)
    assert str(made["ts"]).endswith("Z")
