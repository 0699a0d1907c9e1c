"""Findings, drift and effects of a change, beside what the base has already: new ones are shown, the others are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_lint_in_commands import snapshot
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, repository

OLD = 30
USERS = [f"user-{number}" for number in range(OLD)]
BASE = ("--trusted-ref", "main", "--current", "../now.json")


def entries(**changed: object) -> list[tuple[dict[str, object], dict[str, object]]]:
    """One user a line, each with a limit that is warned about; ``changed``: other values, by user with ``_`` for ``-``."""
    return [({"user": user}, {"request_percentage": changed.get(user.replace("-", "_"), 0.5)}) for user in USERS]


def live(folder: Path, **changed: float) -> None:
    values = {user: {"request_percentage": changed.get(user.replace("-", "_"), 0.5)} for user in USERS}
    entities: list[tuple[dict[str, str | None], dict[str, float]]] = [({"user": user}, has) for user, has in values.items()]
    snapshot(folder, *entities)


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
    change(repo, *entries(user_3=0.4))

    done = plan(repo, "--out", "json=../plan.json", "--out", "github=../lines.txt", "--out", "outputs=../outputs.txt")

    assert done.code == 0
    assert len(done.err.splitlines()) == 2
    assert done.err.splitlines()[1].startswith("29 findings as before: ")
    document = json.loads((repo.folder.parent / "plan.json").read_text())
    assert findings(document, as_before=False) == [("percentage-small", "user-3")]
    assert len(findings(document, as_before=True)) == 29
    (annotation,) = (repo.folder.parent / "lines.txt").read_text().splitlines()
    assert "0.4" in annotation
    outputs = (repo.folder.parent / "outputs.txt").read_text().splitlines()
    assert {"warnings=1", "as_before=29"} <= set(outputs)


def test_a_moved_and_reformatted_file_has_no_new_finding(repo: GitRepository) -> None:
    change(repo, *entries())

    done = invoke("validate", "--trusted-ref", "main", "--fail-on", "warning", cwd=repo.folder)
    every = invoke("validate", "--trusted-ref", "main", "--all", cwd=repo.folder)

    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert "no new findings, 30 as before" in done.out
    assert every.out.count("[percentage-small, as before]") == 20  # the terminal shows 20 of one rule


def test_only_a_new_finding_fails_the_job(repo: GitRepository) -> None:
    unchanged = plan(repo, "--fail-on", "warning")
    change(repo, *entries(user_3=0.4))
    worse = plan(repo, "--fail-on", "warning")

    assert (unchanged.code, worse.code) == (0, 1)
    assert "fails on level warning: 1 warning\n" in worse.err


def test_a_second_finding_that_equals_an_old_one_is_new(repo: GitRepository) -> None:
    change(repo, *entries(), ({"user": "user-x"}, {"request_percentage": 0.5}))

    document = plan(repo, "--format", "json").json()

    assert findings(document, as_before=False) == [("percentage-small", "user-x")]


def test_a_finding_with_a_higher_severity_is_new(repo: GitRepository) -> None:
    repo.git("checkout", "-q", "main")
    repo.write("kafka-quotas.yaml", repository(lint={"percentage-small": "info"}))
    repo.commit()
    repo.branch("severity")
    repo.write("kafka-quotas.yaml", repository(lint={"percentage-small": "warning"}))
    repo.commit()

    lower = invoke("plan", *BASE, "--format", "json", cwd=repo.folder).json()
    higher = invoke("plan", "--base", "main", "--current", "../now.json", "--format", "json", cwd=repo.folder).json()

    # With --trusted-ref the severities of the base apply.
    assert (len(findings(lower, as_before=True)), len(findings(higher, as_before=True))) == (30, 0)


def test_an_error_is_never_as_before(repo: GitRepository) -> None:
    repo.write("kafka-quotas.yaml", repository(lint={"percentage-small": "error"}))
    repo.commit()
    repo.git("checkout", "-q", "-B", "main")

    done = invoke("plan", "--base", "main", "--current", "../now.json", cwd=repo.folder)

    assert done.code == 1
    assert "30 errors" in done.err


def test_an_error_of_the_change_is_not_hidden_among_old_findings(repo: GitRepository) -> None:
    change(repo, *entries(user_3="many"))

    done = plan(repo, "--format", "json")
    comment = plan(repo, "--format", "markdown").out

    assert done.code == 1
    assert [each["id"] for each in done.json()["findings"] if not each.get("as_before")] == ["value-syntax"]
    assert done.json()["summary"] == {"error": 1, "warning": 0, "info": 0, "as_before": 29}
    assert comment.index("many") < comment.index("29 findings as before")


def test_a_base_that_is_not_there_is_said_and_makes_everything_new(repo: GitRepository, tmp_path: Path) -> None:
    repo.git("clone", "-q", "--depth", "1", "--branch", "pull-request", repo.folder.as_uri(), str(tmp_path / "shallow"))

    done = invoke("plan", "--base", "origin/main", "--current", "../now.json", "--format", "json", cwd=tmp_path / "shallow")
    trusted = invoke("plan", "--trusted-ref", "origin/main", "--current", "../now.json", cwd=tmp_path / "shallow")

    assert done.code == 0
    new = [each for each in done.json()["findings"] if not each.get("as_before")]
    assert (len(new), new[0]["id"]) == (31, "base-not-found")
    assert "shallow clone" in new[0]["message"]
    assert trusted.code == 1


def test_drift_and_its_effects_are_told_from_those_of_the_change(repo: GitRepository) -> None:
    live(repo.folder.parent, user_1=5.0)
    change(repo, *entries(user_2=0.4))

    text = plan(repo, "--show-effects").out
    document = plan(repo, "--show-effects", "--format", "json").json()

    marks = {each["entity"]["user"]: each["keys"]["request_percentage"].get("as_before", False) for each in document["changes"]}
    assert marks == {"user-1": True, "user-2": False}
    moves = {each["client"]["user"]: each.get("as_before", False) for each in document["effects"]["moves"]}
    assert moves == {"user-1": True, "user-2": False}
    assert "not from this change" in text
    assert "The cluster already differs from main in 1 limit" in text
    assert "1 effect as before" in text


def test_drift_at_a_base_that_is_checked_out_is_what_apply_is_for(repo: GitRepository) -> None:
    live(repo.folder.parent, user_1=5.0)

    document = plan(repo, "--format", "json").json()

    assert [key.get("as_before") for each in document["changes"] for key in each["keys"].values()] == [None]


def test_the_comment_folds_what_was_there_before(repo: GitRepository) -> None:
    change(repo, *entries(user_3=0.4))
    (repo.folder.parent / "plan.json").write_text(plan(repo, "--format", "json").out)

    comment = invoke("comment", "../plan.json", "--dry-run", cwd=repo.folder).out

    above = comment[: comment.index("<details>")]
    assert "as before" not in above
    assert "0.4 % of one thread is little" in comment
    assert comment.index("0.4 % of one thread") < comment.index("29 findings as before") < comment.index("0.5 % of one thread")
