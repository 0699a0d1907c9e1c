"""``render``, and the formats of ``plan`` and ``validate``, as a user runs them: streams, files, exit codes, colour."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from tests.builders import client, user
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, snapshot
from tests.support.markdown_views import by_github, seen
from tests.support.sarif_schema import sarif_schema
from tests.support.schemas import valid
from tests.support.terminal import Terminal

FORMATS = ("text", "json", "markdown", "github", "sarif", "html")
LIVE = {
    user("a|b @team"): {"producer_byte_rate": 5242880.0},
    user("same"): {"producer_byte_rate": 1048576.0},
    client("old"): {"producer_byte_rate": 4096.0},
}
HEAD = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"
ENTRIES = """\
    - match: {user: "a|b @team"}
      quotas: {producer_byte_rate: 10MiB}
      note: up for the sale
    - match: {user: same}
      quotas: {producer_byte_rate: 1MiB}
    - match: {user: {default: true}}
      quotas: {consumer_byte_rate: 1MiB}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "cluster.yaml").write_text(cluster(), encoding="utf-8")
    (manifests / "quotas.yaml").write_text(HEAD + ENTRIES, encoding="utf-8")
    (tmp_path / "live.json").write_text(snapshot(LIVE), encoding="utf-8")
    return tmp_path


def plan(folder: Path, *arguments: str) -> Done:
    return invoke("plan", "manifests", "--current", "live.json", *arguments, cwd=folder)


def test_one_plan_can_be_written_in_every_format_at_once(folder: Path) -> None:
    arguments = [part for form in FORMATS for part in ("--out", f"{form}=out.{form}")]
    planned = plan(folder, *arguments)
    assert planned.code == 0
    assert (folder / "out.text").read_text(encoding="utf-8") == planned.out
    valid(json.loads((folder / "out.json").read_text()), "plan")
    page = by_github((folder / "out.markdown").read_text(encoding="utf-8"))
    row = ["client-id=old", "removed", "producer_byte_rate", "4\xa0KiB/s → not\xa0set", "no manifest declares it"]
    assert row in [row[:5] for row in page.rows]
    assert 'user="a|b @team"' in [row[0] for row in page.rows]
    sarif = json.loads((folder / "out.sarif").read_text())
    jsonschema.validators.validator_for(sarif_schema())(sarif_schema()).validate(sarif)
    assert {result["ruleId"] for result in sarif["runs"][0]["results"]} >= {"guard/default-entity", "guard/prune"}
    assert all(rule["help"]["text"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"])
    assert (folder / "out.github").read_text().startswith("::warning ")
    assert "up for the sale" in seen((folder / "out.html").read_text(encoding="utf-8").removeprefix("<!DOCTYPE html>\n")).text()
    again = [part for form in FORMATS for part in ("--out", f"{form}=again.{form}")]
    assert invoke("tool", "render", "out.json", *again, cwd=folder).out == planned.out
    for form in FORMATS:
        assert (folder / f"again.{form}").read_bytes() == (folder / f"out.{form}").read_bytes()


def test_what_is_no_plan_ends_with_1_and_one_line(folder: Path) -> None:
    (folder / "plan.json").write_text("{}")
    done = invoke("tool", "render", "plan.json", cwd=folder)
    assert (done.code, done.out) == (1, "")
    assert "the document lacks 'format_version'" in done.err
    assert done.err.count("\n") == 1


PLAN = ("plan", "manifests", "--current", "live.json")
VALIDATE = ("validate", "manifests")
RENDER = ("tool", "render", "plan.json")
COLOUR = re.compile(r"\x1b\[[0-9;]*\b3[0-7]m")


@pytest.mark.parametrize(
    ("arguments", "env", "coloured"),
    [
        (PLAN, {"TERM": "xterm"}, True),
        (VALIDATE, {"TERM": "xterm"}, True),
        (RENDER, {"TERM": "xterm"}, True),
        (PLAN, {"TERM": "dumb"}, False),
        (PLAN, {"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (PLAN, {"TERM": "xterm", "NO_COLOR": ""}, True),
        ((*PLAN, "--color", "never"), {"TERM": "xterm"}, False),
    ],
    ids=str,
)
def test_colour_at_a_terminal(folder: Path, arguments: tuple[str, ...], env: dict[str, str], coloured: bool) -> None:
    assert plan(folder, "--out", "json=plan.json").code == 0
    terminal = Terminal(folder, *arguments, env=env)
    assert terminal.end() == 0
    assert len(terminal.seen) > 20
    # Where the machine is slow, the line of what takes long is erased by a sequence of its own.
    assert (COLOUR.search(terminal.seen) is not None) is coloured


@pytest.mark.parametrize(
    ("env", "more", "coloured"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, (), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
        ({"FORCE_COLOR": "1"}, ("--format", "json"), False),
    ],
    ids=str,
)
def test_colour_in_a_pipe(folder: Path, env: dict[str, str], more: tuple[str, ...], coloured: bool) -> None:
    written = invoke(*PLAN, *more, cwd=folder, env=env).out
    assert ("\x1b" in written) is (COLOUR.search(written) is not None) is coloured
