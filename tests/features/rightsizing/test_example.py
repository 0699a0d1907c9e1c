"""The example: what its README states about each limit comes out, and its commands run as they are written."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository

EXAMPLE = Path(__file__).parents[3] / "examples" / "rightsize"
README = (EXAMPLE / "README.md").read_text("utf-8")
PROD, WRITE = re.findall(r"^    kafka-quotas (.*)$", README, re.MULTILINE)
(COPY,) = re.findall(r"^    cp -r (.*)$", README, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clone of today, with the copy that the README makes in it."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "rightsize")
    clone = GitRepository(tmp_path)
    clone.commit("All of the project")
    source, copy = COPY.split()
    shutil.copytree(tmp_path / source, tmp_path / copy)
    return tmp_path


def run(folder: Path, command: str) -> Done:
    done = invoke(*command.split(), cwd=folder)
    assert done.code == 0, done.err
    return done


def test_each_limit_comes_out_as_the_readme_states(folder: Path) -> None:
    quotas = run(folder, f"{PROD} --format json").json()["quotas"]
    mib = 1024 * 1024
    assert {quota["entity"]["user"]: (quota["verdict"], quota["value"]) for quota in quotas} == {
        "payments": ("fits", None),
        "orders": ("lower", 50 * mib),
        "reports": ("unused", None),
        "billing": ("excluded", None),
    }


def test_the_files_get_the_values_and_keep_their_comments(folder: Path) -> None:
    before = (EXAMPLE / "quotas.yaml").read_text("utf-8")
    assert "The limit rises on prod too" in " ".join(run(folder, WRITE).out.split())
    after = (folder / "limits/quotas.yaml").read_text("utf-8")
    assert after == before.replace(": 8MiB", ": 10.5MiB")
