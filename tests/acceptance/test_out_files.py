"""``--out FORMAT=FILE`` of validate, plan and drift: every format at once, also when manifests cannot be planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli.results import DRIFT_FORMATS, PLAN_FORMATS, VALIDATE_FORMATS
from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.schemas import valid

FORMATS = {"validate": VALIDATE_FORMATS, "plan": PLAN_FORMATS, "drift": DRIFT_FORMATS}
DOCUMENTS = {"validate": "findings", "plan": "plan", "drift": "drift"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas/cluster.yaml").write_text(cluster())
    (tmp_path / "quotas/all.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": 1024})))
    (tmp_path / "now.json").write_text(snapshot({user("alice"): {"producer_byte_rate": 2048.0}}))
    return tmp_path


def with_files(command: str, folder: Path, *arguments: str) -> tuple[Done, dict[str, str]]:
    out = [word for name in FORMATS[command] for word in ("--out", f"{name}=out-{name}")]
    current = () if command == "validate" else ("--current", "now.json")
    done = invoke(command, "quotas", *out, *current, *arguments, cwd=folder)
    return done, {path.name.removeprefix("out-"): path.read_text(encoding="utf-8") for path in folder.glob("out-*")}


@pytest.mark.parametrize("command", FORMATS)
def test_every_format_is_written_beside_the_text_on_stdout(folder: Path, command: str) -> None:
    done, files = with_files(command, folder)
    assert done.code == 0, done.err
    assert set(files) == set(FORMATS[command])
    valid(json.loads(files["json"]), DOCUMENTS[command])
    assert all("=" in line for line in files["outputs"].splitlines())
    assert files["text"] == done.out


@pytest.mark.parametrize("command", FORMATS)
def test_manifests_with_errors_are_findings_in_every_file(folder: Path, command: str) -> None:
    (folder / "quotas/all.yaml").write_text(quotas(({"user": "alice"}, {"producer_byte_rate": "20XiB"})))
    done, files = with_files(command, folder)
    assert done.code == 1
    assert set(files) == set(FORMATS[command])
    valid(json.loads(files["json"]), "findings")
    assert all("unknown-unit" in text for name, text in files.items() if name != "outputs")
    assert files["outputs"] == "errors=1\nwarnings=0\ninfos=0\nas_before=0\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("drift", "--all-clusters", "--out", "sarif=x"), "--all-clusters prints text or json"),
        (("plan", "--all-clusters", "--out", "outputs=x"), "--all-clusters prints text or json"),
        (("drift", "--out", "html=x"), "with FORMAT one of text, json, markdown, github"),
        (("plan", "--out", "plan.json"), "--out 'plan.json': write --out FORMAT=FILE, with FORMAT one of text, json"),
        (("plan", "--out", "pdf=x"), "--out 'pdf=x': write --out FORMAT=FILE"),
        (("plan", "--out", "json="), "--out 'json=': write --out FORMAT=FILE"),
    ],
)
def test_a_format_that_a_command_does_not_have_is_a_usage_error(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    command, *rest = arguments
    done = invoke(command, "quotas", *rest, cwd=folder)
    assert (done.code, words in done.err) == (64, True), done.err
    assert not (folder / "x").exists()
