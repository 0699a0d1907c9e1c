"""The small runner of workflows that other tests rest on: it does with conditions and outputs what GitHub says of them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.workflow_expressions import Expressions
from tests.support.workflow_runner import JobRun, Machine, run_workflow

CONTEXTS: dict[str, Any] = {
    "github": {"ref": "refs/heads/main", "event": {"repository": {"default_branch": "main"}}, "token": None},
    "inputs": {"traffic": "", "publish-snapshot": True, "count": "3"},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("github.ref == format('refs/heads/{0}', github.event.repository.default_branch)", True),
        ("inputs.publish-snapshot && inputs.count != '0'", True),
        ("github.event.pull_request.head.sha", None),
        ("github.event.nothing == ''", True),
        ("'A' == 'a'", True),
        ("'it''s'", "it's"),
        ("inputs.traffic || 'none'", "none"),
        ("!(1 == 2) && false || 'last'", "last"),
        ("fromJSON('[{\"a\": 1}]')", [{"a": 1}]),
        ("'' == 0", True),
        ("'x' == 0", False),
    ],
)
def test_expressions_mean_what_github_says(expression: str, value: object) -> None:
    assert Expressions(CONTEXTS).value(expression) == value


@pytest.mark.parametrize("expression", ["unknown.x", "hashFiles('x')", "1 +", "'open", "github.ref =="])
def test_what_the_evaluator_does_not_know_is_an_error_and_never_a_guess(expression: str) -> None:
    with pytest.raises((ValueError, KeyError, IndexError)):
        Expressions(CONTEXTS).value(expression)


@pytest.mark.parametrize(
    ("condition", "after_success", "after_failure"),
    [
        (True, True, False),
        ("inputs.count == '3'", True, False),
        ("always() && inputs.count == '3'", True, True),
        ("failure()", False, True),
        ("${{ always() }}", True, True),
        ("inputs.traffic != ''", False, False),
    ],
)
def test_a_condition_needs_success_unless_it_says_otherwise(condition: object, after_success: bool, after_failure: bool) -> None:
    assert Expressions(CONTEXTS, status="success").holds(condition) is after_success
    assert Expressions(CONTEXTS, status="failure").holds(condition) is after_failure


def test_a_text_keeps_what_stands_around_an_expression_and_a_lone_one_its_type() -> None:
    filled = Expressions(CONTEXTS).filled
    assert filled("refs/x/${{ inputs.count }}-${{ inputs.publish-snapshot }}") == "refs/x/3-true"
    assert filled({"a": ["${{ inputs.publish-snapshot }}", 1]}) == {"a": [True, 1]}


WORKFLOW = """
on:
  workflow_call:
    inputs:
      word: {type: string, default: first}
permissions: {}
jobs:
  list:
    outputs: {rows: "${{ steps.made.outputs.rows }}"}
    steps:
      - uses: actions/checkout@x
        with: {fetch-depth: 0, persist-credentials: false}
      - id: made
        run: |
          test -f here.txt
          echo 'rows=[{"n": 1}, {"n": 2}]' >> "$GITHUB_OUTPUT"
          printf 'text<<END\\na\\nb\\nEND\\n' >> "$GITHUB_OUTPUT"
          echo "WORD=${WORD:-none}" >> "$GITHUB_ENV"
  each:
    needs: list
    strategy: {matrix: {include: "${{ fromJSON(needs.list.outputs.rows) }}"}}
    steps:
      - name: break
        env: {N: "${{ matrix.n }}", WORD: "${{ inputs.word }}"}
        run: |
          echo "$N $WORD" >> "$GITHUB_STEP_SUMMARY"
          echo "::error file=a.yaml::x"
          test "$N" = 1
      - name: after
        run: "true"
      - name: always
        if: always() && matrix.n == 2
        run: "true"
  last:
    needs: each
    steps:
      - run: "true"
"""


@pytest.fixture
def ran(tmp_path: Path) -> dict[str, list[JobRun]]:
    source = tmp_path / "source"
    source.mkdir()
    (source / "here.txt").write_text("x")
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=source, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=source, check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "workflow.yml").write_text(WORKFLOW)
    machine = Machine(remote=source, folder=tmp_path / "runs", github={"sha": commit}, variables={})
    return run_workflow(tmp_path / "workflow.yml", machine, inputs={"word": "second"})


def test_outputs_make_the_matrix_and_a_failed_step_skips_what_follows(ran: dict[str, list[JobRun]]) -> None:
    assert ran["list"][0].step("made").outputs["text"] == "a\nb"
    assert [(one.matrix, one.result) for one in ran["each"]] == [({"n": 1}, "success"), ({"n": 2}, "failure")]
    assert [one.summary for one in ran["each"]] == ["1 second\n", "2 second\n"]
    assert [[step.outcome for step in one.steps] for one in ran["each"]] == [
        ["success", "success", "skipped"],
        ["failure", "skipped", "success"],
    ]
    assert [one.result for one in ran["last"]] == ["skipped"]
    assert ran["each"][0].step("break").annotations == ["::error file=a.yaml::x"]


def test_an_input_that_is_not_declared_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "workflow.yml").write_text(WORKFLOW)
    machine = Machine(remote=tmp_path, folder=tmp_path, github={"sha": ""}, variables={})
    with pytest.raises(AssertionError):
        run_workflow(tmp_path / "workflow.yml", machine, inputs={"words": "x"})
