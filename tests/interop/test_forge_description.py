"""The server that stands in for GitHub takes and gives what GitHub's published description of its API has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forge_description import complaints
from tests.support.github_server import EXCHANGES

pytestmark = pytest.mark.interop

ROOT = Path(__file__).parents[2]


def test_every_exchange_of_the_tests_is_one_that_github_describes(tmp_path: Path) -> None:
    tests = ("test_suggestions.py", "test_status_check.py", "test_posting.py", "test_rest_api.py", "test_verify_ref.py")
    paths = [str(ROOT / "tests/features/pull_requests" / name) for name in tests]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *paths]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, EXCHANGES: str(tmp_path)}, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout[-2000:]
    lines = {line for file in tmp_path.glob("GitHubServer-*.jsonl") for line in file.read_text("utf-8").splitlines()}
    exchanges = [json.loads(line) for line in lines]
    asked = {(each["method"], each["path"].split("/")[4]) for each in exchanges if each["path"].startswith("/repos/")}
    assert asked >= {
        ("GET", "pulls"), ("POST", "pulls"), ("PATCH", "pulls"), ("DELETE", "pulls"), ("GET", "issues"), ("POST", "issues"),
        ("PATCH", "issues"), ("DELETE", "issues"), ("POST", "check-runs"), ("GET", "commits"), ("GET", "actions"),
    }  # fmt: skip
    # GitHub gives no line for a comment whose line is gone, which its description does not mention.
    said = {
        each
        for exchange in exchanges
        for each in complaints(exchange)
        if not each.endswith(".line: None is not of type 'integer'")
    }
    assert sorted(said) == []


def test_a_field_that_github_does_not_have_is_noticed() -> None:
    exchange = {
        "method": "POST", "path": "/repos/o/r/check-runs", "status": 201,
        "body": {"name": "a", "head_sha": "b", "status": "completed", "conclusion": "good"},
        "document": {"id": 1, "named": "a"},
    }  # fmt: skip
    body, answer = sorted(complaints(exchange))
    assert "named" in body
    assert "conclusion" in answer
