"""``kafka-quotas init``: a repository from nothing and from a cluster, good as it is; and the template itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.builders import client, pair, user
from tests.support.command import Done, invoke
from tests.support.manifests import snapshot

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "examples" / "gitops-repository"
COMMIT = "0123456789" * 4
EMPTY = """{"format_version": "1.0", "cluster": {"name": null, "id": null, "kafka_version": null},
"observed": {"at": "2026-01-02T00:00:00Z", "from": "broker"}, "entities": []}"""


def init(folder: Path, *arguments: str) -> Done:
    return invoke("init", *arguments, cwd=folder)


def files(folder: Path) -> dict[str, str]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


def test_the_template_is_valid_and_plans_to_what_it_declares(tmp_path: Path) -> None:
    (tmp_path / "now.json").write_text(EMPTY)
    assert invoke("validate", str(TEMPLATE), "--fail-on", "info", cwd=tmp_path).code == 0
    plans = {
        name: invoke("plan", str(TEMPLATE), "--cluster", name, "--current", "now.json", "--format", "json", cwd=tmp_path).json()
        for name in ("staging", "production")
    }
    assert {name: plan["summary"]["create"] for name, plan in plans.items()} == {"staging": 5, "production": 4}
    # The first apply is not refused by the template's own guards, and no note stands in each comment.
    assert [plans[name]["applyable"] for name in plans] == [True, True]
    assert [plans[name]["notes"] for name in plans] == [[], []]


def test_every_folder_of_an_owner_has_a_line_of_reviewers_and_every_line_a_folder() -> None:
    owners = yaml.safe_load((TEMPLATE / "kafka-quotas.yaml").read_text(encoding="utf-8"))["spec"]["owners"]
    lines = (TEMPLATE / ".github/CODEOWNERS").read_text(encoding="utf-8").splitlines()
    reviewed = dict(line.split() for line in lines if not line.startswith("#"))
    everything = reviewed.pop("*")
    for owner, said in owners.items():
        for path in said["paths"]:
            folder = path.removesuffix("**")
            assert (TEMPLATE / folder).is_dir()
            assert reviewed.get(f"/{folder}", everything) == f"@YOUR-ORG/{owner}"
    assert all((TEMPLATE / folder.strip("/")).is_dir() for folder in reviewed)


@pytest.mark.parametrize("forge", ["github", "gitlab", "none"])
def test_from_nothing_it_is_the_template_with_the_pipelines_of_the_forge(tmp_path: Path, forge: str) -> None:
    done = init(tmp_path, "repo", "--ci", forge)
    assert done.code == 0, done.err
    made = files(tmp_path / "repo")
    assert [line.strip() for line in done.out.splitlines() if line.strip() in made] == sorted(made)
    of_forge = {"github": ".github/", "gitlab": ".gitlab-ci.yml", "none": "no pipeline"}[forge]
    expected = {path for path in files(TEMPLATE) if not path.startswith((".github", ".gitlab")) or path.startswith(of_forge)} | {
        f".schemas/{kind}.v1.schema.json" for kind in ("client-quotas", "cluster", "repository")
    }
    # Only where there are logs to keep.
    assert set(made) == expected - {".github/workflows/quotas-traffic.yml"}
    assert "<!--" not in made["README.md"]
    assert (".github" in made["README.md"], ".gitlab-ci.yml" in made["README.md"]) == (forge == "github", forge == "gitlab")
    assert invoke("validate", "--fail-on", "info", cwd=tmp_path / "repo").code == 0
    for path, text in made.items():
        if path.endswith(".yaml"):
            named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
            assert named is not None
            assert (tmp_path / "repo" / path).parent.joinpath(named[1]).is_file()


@pytest.mark.parametrize(
    ("forge", "source", "traffic"),
    [
        ("github", "prometheus+https://prom.example.org/", {"prometheus": "https://prom.example.org/"}),
        ("github", "s3a://lake/seconds", {"source": "s3a://lake/seconds", "days": 14}),
        ("github", "/var/log/a 'b': c", {"source": "refs/kafka-quotas/traffic/prod"}),
        ("gitlab", "/srv/a 'b': c", {"source": "refs/kafka-quotas/traffic/prod"}),
        ("gitlab", "s3a://lake/seconds", {"source": "s3a://lake/seconds", "days": 14}),
        ("none", "/srv/history", {"source": "/srv/history"}),
        ("none", "table:lake.quotas", {"source": "table:lake.quotas", "days": 14}),
    ],
)
def test_traffic_is_named_in_the_cluster_manifest_and_logs_are_kept_every_night(
    tmp_path: Path, forge: str, source: str, traffic: dict[str, object]
) -> None:
    (tmp_path / "now.json").write_text(EMPTY)
    done = init(tmp_path, "a", "--current", "now.json", "--name", "prod", "--ci", forge, "--traffic", source)
    assert done.code == 0, done.err
    assert "not checked against traffic" not in done.out
    assert yaml.safe_load((tmp_path / "a/clusters/prod.yaml").read_text("utf-8"))["spec"]["traffic"] == traffic
    kept = ("prod", source) if str(traffic.get("source")).startswith("refs/") else None
    assert nightly_of(tmp_path / "a") == kept
    assert invoke("validate", "--fail-on", "info", cwd=tmp_path / "a").code == 0


def nightly_of(repository: Path) -> tuple[str, str] | None:
    """The cluster and the source of the job that keeps traffic."""
    github = repository / ".github/workflows/quotas-traffic.yml"
    gitlab = repository / ".gitlab-ci.yml"
    if github.exists():
        inputs = yaml.safe_load(github.read_text("utf-8"))["jobs"]["traffic"]["with"]
        return inputs["cluster"], inputs["traffic"].removesuffix("\n")
    job = yaml.safe_load(gitlab.read_text("utf-8")).get("traffic") if gitlab.exists() else None
    return job and (job["parallel"]["matrix"][0]["CLUSTER"][0], job["variables"]["TRAFFIC"])


@pytest.mark.parametrize(("name", "other"), [("staging", "production"), ("production", "staging")])
@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_without_a_cluster_the_traffic_is_of_the_one_that_is_named(tmp_path: Path, forge: str, name: str, other: str) -> None:
    named = () if name == "production" else ("--name", name)
    done = init(tmp_path, "a", "--traffic", "/srv/logs", "--ci", forge, *named)
    assert f"The traffic is of {name}. --name {other} chooses the other one." in done.out
    specs = {each: yaml.safe_load((tmp_path / f"a/clusters/{each}.yaml").read_text("utf-8"))["spec"] for each in (name, other)}
    assert specs[name]["traffic"] == {"source": f"refs/kafka-quotas/traffic/{name}"}
    assert "traffic" not in specs[other]
    assert nightly_of(tmp_path / "a") == (name, "/srv/logs")
    assert invoke("validate", "--fail-on", "info", cwd=tmp_path / "a").code == 0


def test_the_next_commands_are_ones_that_work(tmp_path: Path) -> None:
    (tmp_path / "now.json").write_text(EMPTY)
    begun = init(tmp_path, "my repo")
    assert "Next:\n  kafka-quotas validate 'my repo'\n" in begun.out
    assert "Pull requests are not checked against traffic" in begun.out
    assert "Replace OWNER/kafka-quotas and @YOUR-ORG" in begun.out
    done = init(tmp_path, "b", "--current", "now.json", "--name", "prod eu", "--ci", "none")
    assert "Replace" not in done.out
    validate, plan, git = (line.strip() for line in done.out.partition("Next:\n")[2].splitlines())
    assert invoke(*validate.split()[1:], cwd=tmp_path).code == 0
    assert plan == "kafka-quotas plan b --cluster='prod eu' --current now.json"
    assert invoke("plan", "b", "--cluster=prod eu", "--current", "now.json", "--detailed-exitcode", cwd=tmp_path).code == 0
    assert git == "git -C b init && git -C b add ."


def test_a_folder_with_anything_in_it_is_left_alone_unless_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    refused = init(tmp_path)
    assert (refused.code, "is not empty" in refused.err) == (1, True)
    assert files(tmp_path) == {"README.md": "mine", "notes.txt": "mine"}
    assert init(tmp_path, "--overwrite").code == 0
    assert files(tmp_path)["notes.txt"] == "mine"
    assert files(tmp_path)["README.md"] != "mine"
    assert init(tmp_path, "notes.txt").code == 1


def test_workflows_and_the_tool_in_them_are_pinned_to_the_commit_that_is_given(tmp_path: Path) -> None:
    assert init(tmp_path, "repo", "--workflows", f"acme/kafka-quotas@{COMMIT}").code == 0
    calls = []
    for path, text in files(tmp_path / "repo").items():
        assert "OWNER/" not in text or path == "README.md"
        if path.startswith(".github/workflows"):
            for job in yaml.safe_load(text)["jobs"].values():
                calls.append(job["uses"])
                # The tool is that of the same commit.
                assert "requirement" not in job.get("with", {})
    assert len(calls) == 6
    assert all(re.fullmatch(rf"acme/kafka-quotas/\.github/workflows/[a-z]+\.yml@{COMMIT}", call) for call in calls)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workflows", "acme/kafka-quotas@main"), "OWNER/NAME@COMMIT"),
        (("--workflows", f"acme/kafka-quotas@{COMMIT}", "--ci", "none"), "Pass --ci, too"),
        (("--name", "prod"), "Give one"),
        (("--name", "prod", "--traffic", "/srv/logs"), "staging or production"),
        (("--command-config", "x"), "--command-config needs --bootstrap-server or --zookeeper"),
        (("--current", "x", "--bootstrap-server", "y:1"), "exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = init(tmp_path, "repo", *arguments)
    assert (done.code, words in done.err) == (64, True), done.err
    assert not (tmp_path / "repo").exists()


def test_what_a_snapshot_holds_becomes_manifests_whose_plan_is_empty(tmp_path: Path) -> None:
    held = {
        user("alice"): {"producer_byte_rate": 1024.0},
        pair("alice", "app"): {"request_percentage": 50.0},
        client(): {"consumer_byte_rate": 5.0},
        user("100%25"): {"producer_byte_rate": 7.0},
    }
    (tmp_path / "now.json").write_text(snapshot(held))
    done = init(tmp_path, "repo", "--current", "now.json", "--name", "prod: eu/1", "--ci", "gitlab")
    assert done.code == 0, done.err
    made = files(tmp_path / "repo")
    assert [path for path in made if path.startswith(("clusters/", "teams/"))] == ["clusters/prod-eu-1-cb7f7d25.yaml"]
    assert yaml.safe_load(made[".gitlab-ci.yml"])["plan"]["parallel"]["matrix"] == [{"CLUSTER": ["prod: eu/1"]}]
    assert invoke("validate", cwd=tmp_path / "repo").code == 0
    planned = invoke("plan", "--current", "../now.json", "--format", "json", "--detailed-exitcode", cwd=tmp_path / "repo")
    assert (planned.code, planned.json()["summary"]["unchanged"]) == (0, 4)
