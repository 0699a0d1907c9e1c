"""``plan --fail-on-guard``: a job is red when apply would refuse the plan, and its files are there all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import user
from tests.support.command import invoke
from tests.support.manifests import quotas, snapshot

CUT = ({"user": "alice"}, {"producer_byte_rate": 1048576})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas.yaml").write_text(quotas(CUT), "utf-8")
    (tmp_path / "now.json").write_text(snapshot({user("alice"): {"producer_byte_rate": 104857600.0}}))
    return tmp_path


def test_a_guard_fails_the_job_after_the_files_were_written(folder: Path) -> None:
    plain = invoke("plan", "--current", "now.json", cwd=folder)
    failed = invoke("plan", "--current", "now.json", "--fail-on-guard", "--out", "json=plan.json", cwd=folder)

    assert (plain.code, failed.code) == (0, 3)
    tripped = [each["id"] for each in json.loads((folder / "plan.json").read_text())["guards"] if each["status"] != "passed"]
    assert tripped == ["large-reduction"]
    assert "1 guard needs acceptance: large-reduction" in failed.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--accept", "large-reduction"), 0),
        (("--detailed-exitcode",), 3),
        (("--fail-on", "info"), 1),
        (("--accept", "large-reduction", "--detailed-exitcode"), 2),
    ],
)
def test_an_error_is_worse_than_a_guard_and_a_guard_than_a_difference(
    folder: Path, arguments: tuple[str, ...], code: int
) -> None:
    (folder / "more.yaml").write_text(quotas(({"user": "bob"}, {"producer_byte_rate": 20})), "utf-8")
    assert invoke("plan", "--current", "now.json", "--fail-on-guard", *arguments, cwd=folder).code == code
