"""``apply`` and ``revert`` that end before anything can be written: one document, one line, and progress only for the patient."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas
from tests.support.schemas import valid


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = {"bootstrapServers": [f"127.0.0.1:{refusing_port()}"]}
    (tmp_path / "cluster.yaml").write_text(cluster("test", connection=connection))
    (tmp_path / "quotas.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "1MiB"})))
    (tmp_path / "report.json").write_text("{}")
    return tmp_path


def failed(done: Done, *, code: int, result: str, reason: str) -> None:
    """One document that holds against its schema, one line on stderr, and the code."""
    assert done.code == code
    document = done.json()
    valid(document, "apply-report")
    assert (document["result"], document["failure_reason"]) == (result, reason)
    assert document["message"] in done.err
    assert done.err.count("\n") == 1
    assert document["changes"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "result", "reason"),
    [
        (("apply",), 1, "failed", "unreachable"),
        (("apply", "--plan", "absent.json"), 1, "failed", "file"),
        (("apply", "--audit", "absent/audit.jsonl"), 1, "failed", "file"),
        (("apply", "--trusted-ref", "main"), 1, "failed", "git"),
        (("apply", "--command-config", "absent.properties"), 1, "failed", "file"),
        (("revert", "absent.json"), 1, "failed", "file"),
        (("revert", "report.json", "--cluster", "test", "."), 1, "failed", "file"),
    ],
)
def test_with_json_there_is_one_document_however_it_ends(
    folder: Path, arguments: tuple[str, ...], code: int, result: str, reason: str
) -> None:
    failed(invoke(*arguments, "--format", "json", cwd=folder), code=code, result=result, reason=reason)


@pytest.mark.parametrize("arguments", [("--step-down", "1"), ("--step-wait", "5"), ("--cluster", "x")])
def test_wrong_usage_is_no_run_and_has_no_document(folder: Path, arguments: tuple[str, ...]) -> None:
    done = invoke("apply", *arguments, "--format", "json", "--audit", "audit.jsonl", cwd=folder)
    assert (done.code, done.out) == (64, "")
    assert not (folder / "audit.jsonl").exists() or (folder / "audit.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--watch", "spec.traffic"), "--watch needs --step-down FACTOR"),
        (("--step-down", "2", "--step-wait", "5", "--watch", "spec.traffic"), "the longest window of a rate. Raise --step-wait"),
    ],
)
def test_a_watch_that_would_see_nothing_is_refused_in_a_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = invoke("apply", *arguments, cwd=folder)
    assert (done.code, done.out) == (64, "")
    assert sentence in done.err
