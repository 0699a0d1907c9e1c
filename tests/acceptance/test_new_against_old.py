"""Findings, drift and effects of a change, beside what the base has already: new ones are shown, the others are counted."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.builders import user
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, repository, snapshot
from tests.support.schemas import valid

OLD = 30
USERS = [f"user-{number}" for number in range(OLD)]
BASE = ("--trusted-ref", "main", "--current", "../now.json")


def entries(**changed: object) -> list[tuple[dict[str, object], dict[str, object]]]:
    """One user a line, each with a limit that is warned about; ``changed``: other values, by user with ``_`` for ``-``."""
    return [({"user": name}, {"request_percentage": changed.get(name.replace("-", "_"), 0.5)}) for name in USERS]


def live(folder: Path, *more: str, **changed: float) -> None:
    names = (*USERS, *more)
    values = {user(name): {"request_percentage": changed.get(name.replace("-", "_"), 0.5)} for name in names}
    (folder / "now.json").write_text(snapshot(values))


@pytest.fixture
def repo(tmp_path: Path) -> GitRepository:
    """A pull request on manifests with 30 warnings."""
    made = GitRepository(tmp_path / "repo")
    made.write("prod.yaml", cluster("prod", prune="never"))
    made.write("quotas.yaml", quotas(*entries()))
    made.commit()
    made.branch()
    live(tmp_path)
    return made


def change(repo: GitRepository, *entry: tuple[dict[str, object], dict[str, object]]) -> None:
    repo.write("quotas.yaml", "# Moved by a comment.\n\n" + quotas(*reversed(entry)))
    repo.commit()


def plan(repo: GitRepository, *arguments: str) -> Done:
    return invoke("plan", *BASE, *arguments, cwd=repo.folder)


def findings(document: dict[str, Any], *, as_before: bool) -> list[tuple[str, str]]:
    chosen = (each for each in document["findings"] if each.get("as_before", False) is as_before)
    return [(each["id"], each["entity"]["user"]) for each in chosen]


def test_a_change_of_one_line_shows_its_own_finding_and_counts_the_others(repo: GitRepository) -> None:
    assert plan(repo, "--fail-on", "warning").code == 0
    change(repo, *entries(user_3=0.4))
    worse = plan(repo, "--fail-on", "warning")
    assert (worse.code, "fails on level warning: 1 warning\n" in worse.err) == (1, True)

    files = ("json=../plan.json", "github=../lines.txt", "outputs=../outputs.txt", "sarif=../plan.sarif")
    done = plan(repo, *(argument for file in files for argument in ("--out", file)))

    assert done.code == 0
    assert len(done.err.splitlines()) == 2
    assert done.err.splitlines()[1].startswith("29 findings as before: ")
    document = json.loads((repo.folder.parent / "plan.json").read_text())
    assert findings(document, as_before=False) == [("percentage-small", "user-3")]
    assert len(findings(document, as_before=True)) == 29
    results = json.loads((repo.folder.parent / "plan.sarif").read_text())["runs"][0]["results"]
    assert Counter(each.get("baselineState") for each in results) == {"new": 1, "unchanged": 29}
    (annotation,) = (repo.folder.parent / "lines.txt").read_text().splitlines()
    assert "0.4" in annotation
    outputs = (repo.folder.parent / "outputs.txt").read_text().splitlines()
    assert {"warnings=1", "as_before=29"} <= set(outputs)


def test_an_error_of_the_change_is_not_hidden_among_old_findings(repo: GitRepository) -> None:
    change(repo, *entries(user_3="many"))

    done = plan(repo, "--format", "json")
    comment = plan(repo, "--format", "markdown").out

    assert done.code == 1
    valid(done.json(), "findings")
    assert [each["id"] for each in done.json()["findings"] if not each.get("as_before")] == ["value-syntax"]
    assert done.json()["summary"] == {"error": 1, "warning": 0, "info": 0, "as_before": 29}
    assert comment.index("many") < comment.index("29 findings as before")


def test_a_base_that_is_not_there_is_said_and_makes_everything_new(repo: GitRepository, tmp_path: Path) -> None:
    repo.git("clone", "-q", "--depth", "1", "--branch", "pull-request", repo.folder.as_uri(), str(tmp_path / "shallow"))

    done = invoke("plan", "--base", "origin/main", "--current", "../now.json", "--format", "json", cwd=tmp_path / "shallow")
    trusted = invoke("plan", "--trusted-ref", "origin/main", "--current", "../now.json", cwd=tmp_path / "shallow")
    checked = invoke("validate", "--base", "origin/main", "--format", "json", cwd=tmp_path / "shallow")

    assert [each["id"] for each in checked.json()["findings"]].count("percentage-small") == 30
    assert checked.json()["findings"][0]["id"] == "base-not-found"
    assert not any(each.get("as_before") for each in checked.json()["findings"])
    assert done.code == 0
    new = [each for each in done.json()["findings"] if not each.get("as_before")]
    assert (len(new), new[0]["id"]) == (31, "base-not-found")
    assert "shallow clone" in new[0]["message"]
    assert trusted.code == 1


@pytest.mark.parametrize("base", ["a value", "an entity twice"])
def test_a_base_with_errors_counts_as_nothing_known(repo: GitRepository, base: str) -> None:
    repo.git("checkout", "-q", "main")
    change(repo, *(entries(user_3="many") if base == "a value" else entries() * 2))
    repo.git("checkout", "-q", "pull-request")
    command = ("plan", "--base", "main", "--current", "../now.json", "--format", "json")

    mended = invoke(*command, cwd=repo.folder)
    change(repo, *entries(user_5="few"))
    wrong = invoke(*command, cwd=repo.folder)

    assert (mended.code, wrong.code) == (0, 1)
    new = [each for each in mended.json()["findings"] if not each.get("as_before")]
    assert (len(new), new[0]["id"]) == (31, "base-not-found")
    assert "the manifests at main have errors" in new[0]["message"]
    assert {each["file"] for each in wrong.json()["findings"] if each["severity"] == "error"} == {"quotas.yaml"}


def test_drift_and_its_effects_are_told_from_those_of_the_change(repo: GitRepository) -> None:
    live(repo.folder.parent, user_1=5.0)
    change(repo, *entries(user_2=0.4))

    text = plan(repo, "--show-effects").out
    document = plan(repo, "--show-effects", "--format", "json").json()

    valid(document, "plan")
    marks = {each["entity"]["user"]: each["keys"]["request_percentage"].get("as_before", False) for each in document["changes"]}
    assert marks == {"user-1": True, "user-2": False}
    moves = {each["client"]["user"]: each.get("as_before", False) for each in document["effects"]["moves"]}
    assert moves == {"user-1": True, "user-2": False}
    assert "not from this change" in text
    assert "The cluster already differs from main in 1 limit" in text
    assert "1 effect as before" in text


def baseline_of(repo: GitRepository) -> str:
    """The name of a file with all findings, in which the reason is written."""
    done = invoke("validate", "--write-baseline", BASELINE, cwd=repo.folder)
    assert (done.code, "lists 30 findings" in done.err) == (0, True), done.err
    file = repo.folder / BASELINE
    file.write_text(re.sub(r'reason: "".*', "reason: exported as it was", file.read_text()))
    return BASELINE


BASELINE = "kafka-quotas-baseline.yaml"
NOW = ("--current", "../now.json")


def test_a_baseline_file_counts_for_plan_and_validate_without_an_option(repo: GitRepository) -> None:
    baseline_of(repo)
    repo.write("quotas.yaml", "# Moved.\n" + quotas(*reversed(entries(user_3=0.4))))

    planned = invoke("plan", *NOW, "--fail-on", "warning", cwd=repo.folder)
    checked = invoke("validate", "--fail-on", "warning", cwd=repo.folder)
    good = invoke("plan", *NOW, "--accept", "large-reduction", "--fail-on", "error", cwd=repo.folder)

    assert (planned.code, checked.code, good.code) == (1, 1, 0)
    assert [line.split(": ")[1] for line in planned.err.splitlines()[:2]] == ["warning", "--format json lists them"]
    assert "1 warning, 1 info, 29 as before" in checked.out  # the info: the entry of user-3 is stale


def validated(repo: GitRepository, *arguments: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = invoke("validate", *arguments, "--format", "json", cwd=repo.folder).json()["findings"]
    return listed


def test_an_expired_baseline_covers_nothing(repo: GitRepository) -> None:
    file = repo.folder / baseline_of(repo)
    file.write_text(re.sub(r"until: .*", "until: 2020-01-01", file.read_text()))

    new = [each for each in validated(repo) if not each.get("as_before")]

    assert len(new) == 31
    assert [(each["id"], each["line"]) for each in new if each["id"] != "percentage-small"] == [("baseline-expired", 7)]


def test_a_corrected_finding_leaves_an_entry_to_remove_and_writing_again_removes_it(repo: GitRepository) -> None:
    file = repo.folder / baseline_of(repo)
    repo.write("quotas.yaml", quotas(*entries(user_0=50, user_1=0.4)))
    text = file.read_text()
    stale = [(each["id"], text.splitlines()[each["line"] - 1]) for each in validated(repo) if each["file"] == BASELINE]

    again = invoke("validate", "--write-baseline", BASELINE, cwd=repo.folder)

    assert stale == [("baseline-stale", "    - id: percentage-small")] * 2
    assert "lists 29 findings" in again.err
    asked = [each for each in validated(repo) if not each.get("as_before")]
    # The new entry has no reason yet: that of the others was not written for it.
    assert [(each["id"], each["message"].partition(".")[0]) for each in asked] == [
        ("baseline-without-reason", "1 entry has no reason")
    ]
    assert '"user-1", request_percentage, "0.4"' in file.read_text().replace("user=", "")


@pytest.mark.parametrize(
    ("text", "rule", "place"),
    [
        ("spec: {until: 2999-01-01, reason: old, findings: []}\n", "baseline-stale", (1, 1)),
        ("spec: {until: soon, reason: old, findings: []}\n", "wrong-value", (3, 15)),
        ("spec: {until: 2999-01-01, findings: []}\n", "missing-field", (3, 7)),
        ("spec: {until: 2999-01-01, reason: a, findings: [{id: a, subject: [], severity: error}]}\n", "wrong-value", (3, 80)),
        ("spec: {until: 2999-01-01, reason: a, findings: [{id: a, subject: [], why: b}]}\n", "unknown-field", (3, 70)),
    ],
)
def test_a_malformed_baseline_is_reported_where_it_is_wrong(
    repo: GitRepository, text: str, rule: str, place: tuple[int, int]
) -> None:
    repo.write(BASELINE, f"apiVersion: kafka-quotas/v1\nkind: FindingsBaseline\n{text}")

    (finding,) = [each for each in validated(repo) if each["file"] == BASELINE]

    assert (finding["id"], (finding["line"], finding["column"])) == (rule, place)


def test_a_baseline_of_the_pull_request_counts_after_the_merge(repo: GitRepository) -> None:
    change(repo, *entries(user_3=0.4))
    invoke("validate", "--write-baseline", BASELINE, cwd=repo.folder)
    repo.commit()

    own = invoke("plan", *NOW, "--format", "json", cwd=repo.folder).json()
    trusted = plan(repo, "--format", "json").json()

    assert findings(own, as_before=False) == []
    assert findings(trusted, as_before=False) == [("percentage-small", "user-3")]
    assert any("main does not have the findings baseline yet" in note for note in trusted["notes"])


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("quotas.yaml", "is not the findings baseline"),
        (".baseline.yaml", "takes a manifest"),
        ("teams/baseline.yaml", "counts only beside"),
    ],
)
def test_a_baseline_is_written_only_where_it_counts(repo: GitRepository, file: str, words: str) -> None:
    (repo.folder / "teams").mkdir()
    repo.write("kafka-quotas.yaml", repository())
    text = (repo.folder / "quotas.yaml").read_text()

    done = invoke("validate", "--write-baseline", file, cwd=repo.folder)

    assert (done.code, words in done.err) == (64, True), done.err
    assert (repo.folder / "quotas.yaml").read_text() == text
