"""Policies of the Repository manifest, as a user meets them: validate, plan, apply's exit code, JSON and the comment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import user
from tests.support.command import Done, environment, invoke
from tests.support.git_repository import GitRepository
from tests.support.manifests import cluster, quotas, repository, snapshot
from tests.support.schemas import valid

RATE = "producer_byte_rate"
TWO = quotas(({"user": "a"}, {RATE: 1000}), ({"user": "b"}, {RATE: 3000}))
TEN = list(range(11))
MANY_LOOPS = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, plan.complete))))"
SMALL = "change.keys.all(k, change.keys[k].after < 2000.0)"
STRICT = {"name": "one-change", "require": "size(plan.changes) <= 1", "message": "Split the change."}


def write(folder: Path, *policies: Mapping[str, object], manifests: str = TWO, **spec: object) -> Path:
    (folder / "kafka-quotas.yaml").write_text(repository(policies=list(policies)), encoding="utf-8")
    (folder / "cluster.yaml").write_text(cluster("prod", **{"prune": "never", **spec}), encoding="utf-8")
    (folder / "quotas.yaml").write_text(manifests, encoding="utf-8")
    (folder / "now.json").write_text(snapshot({user("a"): {RATE: 1000.0}, user("b"): {RATE: 1000.0}, user("c"): {RATE: 1.0}}))
    return folder


def plan(folder: Path, *arguments: str) -> Done:
    return invoke("plan", ".", "--current", "now.json", *arguments, cwd=folder)


def guards(done: Done) -> dict[str, str]:
    document = done.json()
    valid(document, "plan")
    return {guard["id"]: guard["status"] for guard in document["guards"] if guard["id"].startswith("policy:")}


def test_a_violated_policy_is_a_tripped_guard_and_a_satisfied_one_passes(tmp_path):
    write(tmp_path, STRICT, {"name": "few", "require": "size(plan.changes) < 9"}, prune="always")
    done = plan(tmp_path, "--accept", "prune", "--format", "json")

    assert guards(done) == {"policy:one-change": "needs-acceptance", "policy:few": "passed"}
    assert done.json()["applyable"] is False
    text = plan(tmp_path, "--accept", "prune").out
    assert "Policy one-change: Split the change." in text
    assert "This policy cannot be accepted." in text


def test_a_policy_is_accepted_by_name_only_where_it_permits_that(tmp_path):
    write(tmp_path, {**STRICT, "acceptable": True}, {"name": "none", "require": "size(plan.changes) == 0"}, prune="always")

    accepted = plan(tmp_path, "--accept", "policy:one-change", "--accept", "prune", "--format", "json")
    refused = plan(tmp_path, "--accept", "policy:none")
    unknown = plan(tmp_path, "--accept", "policy:one-chnge")

    assert guards(accepted)["policy:one-change"] == "accepted"
    assert (refused.code, unknown.code) == (64, 64)
    assert "'policy:none' cannot be accepted: the policy does not set acceptable: true" in refused.err
    assert "unknown policy 'policy:one-chnge'" in unknown.err
    assert "policy:one-change" in unknown.err


def test_an_exception_in_the_cluster_manifest_counts_until_its_last_day_and_for_its_entities(tmp_path):
    policy = {"name": "small", "each": "change", "require": SMALL, "acceptable": True}
    entry = {"guard": "policy:small", "until": "2999-01-01", "reason": "the launch", "match": {"user": "b"}}
    for exception, expected in (
        (entry, "accepted"),
        ({**entry, "until": "2020-01-01"}, "needs-acceptance"),
        ({**entry, "match": {"user": "a"}}, "needs-acceptance"),
    ):
        write(tmp_path, policy, accept=[exception])
        assert guards(plan(tmp_path, "--format", "json")) == {"policy:small": expected}
    write(tmp_path, {**policy, "acceptable": False}, accept=[entry])
    assert "unknown-guard" in invoke("validate", ".", cwd=tmp_path).out


def test_a_policy_over_changes_names_the_entities_and_a_warning_does_not_refuse(tmp_path):
    policy = {"name": "small", "each": "change", "severity": "warning", "require": SMALL}
    write(tmp_path, policy)

    done = plan(tmp_path, "--format", "json")

    (finding,) = [finding for finding in done.json()["findings"] if finding["id"] == "policy-violated"]
    assert (finding["severity"], done.json()["applyable"]) == ("warning", True)
    assert finding["message"] == "Policy small: Changes that violate it: user=b."
    assert finding["file"] == "kafka-quotas.yaml"


@pytest.mark.parametrize(
    ("require", "reason"),
    [
        ("plan.nothing == 1", 'Key not found in map : "nothing"'),
        ("2.0 * plan.summary.create >= 0.0", "write 2.0 instead of 2"),
        ("plan.summary.create", "must be true or false"),
        ("1 / (plan.summary.create - plan.summary.create) == 1", "divide by zero"),
        (MANY_LOOPS, "Iteration budget exceeded"),
    ],
)
@pytest.mark.parametrize("each", ["plan", "change"])
def test_a_policy_that_cannot_be_evaluated_counts_as_violated(tmp_path, require, reason, each):
    write(tmp_path, {"name": "broken", "each": each, "require": require})

    done = plan(tmp_path, "--format", "json")

    assert guards(done) == {"policy:broken": "needs-acceptance"}
    (message,) = [guard["message"] for guard in done.json()["guards"] if guard["id"] == "policy:broken"]
    assert "could not be evaluated" in message
    assert reason in message


def test_validate_shows_the_place_of_each_mistake_in_an_expression(tmp_path):
    write(tmp_path)
    (tmp_path / "kafka-quotas.yaml").write_text(
        "apiVersion: kafka-quotas/v1\n"
        "kind: Repository\n"
        "spec:\n"
        "  policies:\n"
        "    - name: plain\n"
        "      require: size(plan.changes) < 'x'\n"
        '    - {name: quoted, require: "true && unknown == 1"}\n'
        "    - name: block\n"
        "      when: change.action == 'delete'\n"
        "      require: |\n"
        "        true &&\n"
        "          nothing(plan)\n"
        "    - name: folded\n"
        "      require: >-\n"
        "        true &&\n"
        "        (\n"
        "    - name: number\n"
        "      require: size(plan.changes)\n",
        encoding="utf-8",
    )

    done = invoke("validate", ".", cwd=tmp_path)
    places = [line.partition(": error: ")[0] for line in done.out.splitlines() if "[invalid-policy]" in line]

    assert done.code == 1
    assert places == [
        "kafka-quotas.yaml:6:35",
        "kafka-quotas.yaml:7:40",
        "kafka-quotas.yaml:9:19",
        "kafka-quotas.yaml:12:18",
        "kafka-quotas.yaml:14:16",
        "kafka-quotas.yaml:18:16",
    ]
    lines = done.out.splitlines()
    caret = lines[next(number for number, line in enumerate(lines) if "12:18" in line) + 2]
    excerpt = lines[next(number for number, line in enumerate(lines) if "12:18" in line) + 1]
    assert excerpt[caret.index("^") :].startswith("(plan)")


def test_a_pull_request_does_not_change_the_policies_that_judge_it(tmp_path):
    git = GitRepository(tmp_path)
    write(tmp_path, {**STRICT, "require": "size(plan.changes) == 0"})
    git.commit()
    git.git("branch", "base")
    write(tmp_path, {**STRICT, "require": "true"})
    git.commit()

    own = plan(tmp_path, "--format", "json")
    judged = plan(tmp_path, "--trusted-ref", "base", "--format", "json")

    assert guards(own) == {"policy:one-change": "passed"}
    assert guards(judged) == {"policy:one-change": "needs-acceptance"}
    assert any("the Repository manifest" in note for note in judged.json()["notes"])


def test_names_of_strangers_in_a_violation_are_escaped(tmp_path):
    manifests = quotas(({"user": "b\u202e@team"}, {RATE: 3000}))
    write(tmp_path, {"name": "none", "each": "change", "require": "false"}, manifests=manifests)

    done = plan(tmp_path, "--out", "markdown=comment.md")

    assert "\u202e" not in done.out
    assert "policy:none" in (tmp_path / "comment.md").read_text(encoding="utf-8")


def test_without_the_library_one_sentence_names_the_extra(tmp_path):
    write(tmp_path, STRICT)
    program = (
        "import sys; sys.modules['cel_expr_python'] = None; from reconciler.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "validate", "."]

    done = subprocess.run(command, cwd=tmp_path, env=environment({}), capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 1
    assert "cel-expr-python, which is not installed. Install the extra policies (kafka-quotas explain install)" in done.stdout
