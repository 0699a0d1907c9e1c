"""The ``.gitlab-ci.yml`` of the template: its jobs run as written, in their order, against a real broker."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, run, run_script
from tests.support.git_repository import GitRepository
from tests.support.gitlab_server import (
    HEAD,
    JOB_TOKEN,
    NUMBER,
    PROJECT,
    PROJECT_ID,
    TOKEN,
    GitLabServer,
    gitlab_server,
    merge_request,
)
from tests.support.manifests import quotas

CLICKS = frozenset({("user", "analytics-clickstream")})
PAYMENTS = "teams/payments/quotas.yaml"
RECORDING = Path(__file__).parents[1] / "traffic/recordings/kafka-4.3.1/kafka-request.log.gz"


class Pipeline:
    """A clone as GitLab's runner has it, and the jobs of the file that ``init --ci gitlab`` writes."""

    def __init__(self, folder: Path, server: str) -> None:
        self.main = GitRepository(folder / "main")
        logs = folder / "logs" / "broker-1"
        logs.mkdir(parents=True)
        shutil.copy(RECORDING, logs)
        traffic = ("--traffic", str(logs.parent), "--name", "staging")
        done = run("init", "main", "--overwrite", "--ci", "gitlab", *traffic, cwd=folder)
        assert done.code == 0, done.err
        self.jobs: dict[str, Any] = yaml.safe_load((self.main.folder / ".gitlab-ci.yml").read_text(encoding="utf-8"))
        text = (self.main.folder / "clusters/staging.yaml").read_text(encoding="utf-8")
        self.main.write("clusters/staging.yaml", text.replace("kafka.staging.example:9092", server))
        # Limits for everybody would slow down the tests' own connections.
        shutil.rmtree(self.main.folder / "teams/platform")
        self.main.commit()
        self.main.git("clone", "-q", ".", str(folder / "clone"))
        self.clone = GitRepository(folder / "clone")
        properties = folder / "client.properties"
        properties.write_text("client.id=pipeline\n", encoding="utf-8")
        self.variables = {
            "CI": "true",
            "CI_API_V4_URL": f"http://127.0.0.1:{refusing_port()}/api/v4",
            "CI_DEFAULT_BRANCH": "main",
            "CI_JOB_TOKEN": JOB_TOKEN,
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_PROJECT_ID": "1",
            "CLUSTER": "staging",
            "QUOTAS_PROPERTIES": str(properties),
        }

    def run(self, job: str, **variables: str) -> Done:
        """The script of a job as one script of bash, which is what a runner makes of it."""
        script = "\n".join(("set -eo pipefail", *self.jobs[job]["script"]))
        given = {**self.variables, **self.jobs[job].get("variables", {}), **variables}
        return run_script(script, cwd=self.clone.folder, shell=("bash", "--noprofile", "--norc"), env=given)

    def file(self, job: str, kind: str) -> Path:
        """A report that the job declares; it must be there."""
        path = self.clone.folder / self.jobs[job]["artifacts"]["reports"][kind]
        assert path.is_file()
        return path


@pytest.fixture
def offline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path, f"127.0.0.1:{refusing_port()}")


def test_every_job_has_a_stage_and_its_words_are_gitlab_s(offline: Pipeline) -> None:
    jobs = {name: job for name, job in offline.jobs.items() if isinstance(job, dict) and "script" in job}
    assert list(jobs) == ["validate", "plan", "apply", "drift", "rightsize", "traffic"]
    assert {job["stage"] for job in jobs.values()} == set(offline.jobs["stages"])
    for job in jobs.values():
        assert set(job["artifacts"].get("reports", {})) <= {"codequality", "dotenv"}
        assert all(set(rule) == {"if"} for rule in job["rules"])
    assert jobs["plan"]["parallel"] == {"matrix": [{"CLUSTER": ["staging", "production"]}]}
    assert jobs["apply"]["resource_group"] == "quotas-$CLUSTER"


def test_a_merge_request_with_errors_fails_with_a_code_quality_report(offline: Pipeline) -> None:
    text = (offline.clone.folder / PAYMENTS).read_text(encoding="utf-8")
    offline.clone.write(PAYMENTS, text.replace("request_percentage: 200", "request_percentage: 401"))
    done = offline.run("validate")
    assert done.code == 1
    (issue, *_) = json.loads(offline.file("validate", "codequality").read_text(encoding="utf-8"))
    assert (issue["check_name"], issue["severity"]) == ("above-limit", "critical")
    assert issue["location"]["path"] == PAYMENTS


def test_where_no_cluster_answers_the_pipeline_fails_and_no_comment_is_tried(offline: Pipeline) -> None:
    with gitlab_server() as gitlab:
        variables = {"GITLAB_TOKEN": TOKEN, "CI_API_V4_URL": gitlab.url, "CI_MERGE_REQUEST_IID": str(NUMBER)}
        done = offline.run("plan", **variables)
    assert (done.code, gitlab.requests) == (1, [])
    assert "no Kafka broker can be reached" in done.err
    assert JOB_TOKEN not in done.out + done.err


def test_a_job_that_is_started_again_applies_nothing_once_there_is_a_newer_commit(offline: Pipeline) -> None:
    text = (offline.main.folder / PAYMENTS).read_text(encoding="utf-8")
    offline.main.write(PAYMENTS, text.replace("producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB"))
    offline.main.commit()
    done = offline.run("apply", CI_COMMIT_BRANCH="main")
    assert done.code == 1
    assert done.out == "Not applied. main has a newer commit, and its own job applies it.\n"
    assert not (offline.clone.folder / "report.json").exists()


def test_limits_that_no_longer_fit_come_as_a_merge_request_by_the_traffic_that_the_nightly_job_kept(
    tmp_path: Path, offline: Pipeline
) -> None:
    clone, served = offline.clone, tmp_path / "served" / f"{PROJECT}.git"
    limit = quotas(({"user": "alice"}, {"producer_byte_rate": "10KiB"}), owner="team-platform", clusters=["staging"])
    clone.write("teams/platform/alice.yaml", limit)
    clone.commit(at=datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
    clone.git("clone", "-q", "--bare", ".", str(served))
    clone.git("remote", "set-url", "origin", str(served))
    assert offline.run("traffic").code == 0
    with gitlab_server() as gitlab:
        gitlab.pulls = []
        gitlab.artifacts["traffic: [staging]", "traffic.bundle"] = (clone.folder / "traffic.bundle").read_bytes()
        clone.git("update-ref", "-d", "refs/kafka-quotas/traffic/staging")
        job = {"GITLAB_CI": "true", "CI_API_V4_URL": gitlab.url, "CI_PROJECT_ID": PROJECT_ID, "CI_PROJECT_PATH": PROJECT}
        job["CI_SERVER_URL"] = f"file://{tmp_path}/served"
        shown = offline.run("rightsize", **job)
        assert (shown.code, gitlab.pulls) == (0, []), shown.err
        assert "user=alice producer_byte_rate" in shown.out
        done = offline.run("rightsize", **job, PROPOSE_TOKEN=TOKEN)
    assert done.code == 0, done.err
    (merge,) = gitlab.pulls
    assert (merge["title"], merge["target_branch"]) == ("Rightsize staging: 1 limit of team-platform", "main")
    assert clone.git("-C", str(served), "diff", "--name-only", "main", merge["source_branch"]) == "teams/platform/alice.yaml"
    assert TOKEN not in done.out + done.err


@pytest.fixture
def gitlab() -> Iterator[GitLabServer]:
    with gitlab_server() as server:
        yield server


@pytest.mark.kafka
def test_from_a_merge_request_to_drift(tmp_path: Path, clean_kafka: Sandbox, gitlab: GitLabServer) -> None:
    pipeline = Pipeline(tmp_path, clean_kafka.bootstrap_servers)
    job = {"GITLAB_CI": "true", "CI_API_V4_URL": gitlab.url, "CI_PROJECT_ID": PROJECT_ID, "CI_PROJECT_PATH": PROJECT}
    pipeline.variables |= {**job, "GITLAB_TOKEN": TOKEN, "CI_COMMIT_SHA": HEAD}
    for _ in range(2):
        # The second night adds to what the first one left.
        kept = pipeline.run("traffic")
        assert kept.code == 0, kept.err
        gitlab.artifacts["traffic: [staging]", "traffic.bundle"] = (pipeline.clone.folder / "traffic.bundle").read_bytes()
        (pipeline.clone.folder / "traffic.bundle").unlink()
    pipeline.clone.git("update-ref", "-d", "refs/kafka-quotas/traffic/staging")
    pipeline.clone.git("checkout", "-q", "-b", "change")
    text = (pipeline.clone.folder / PAYMENTS).read_text(encoding="utf-8")
    pipeline.clone.write(PAYMENTS, text.replace("producer_byte_rate: 10MiB", "producer_byte_rate: 12MiB"))
    pipeline.clone.write(
        "teams/platform/alice.yaml", quotas(({"user": "alice"}, {"producer_byte_rate": "10KiB"}), owner="team-platform")
    )
    assert pipeline.run("validate").code == 0
    assert json.loads(pipeline.file("validate", "codequality").read_text(encoding="utf-8")) == []
    planned = pipeline.run("plan", CI_MERGE_REQUEST_IID=str(NUMBER))
    assert planned.code == 0, planned.err
    (posted,) = gitlab.comments.values()
    assert "Kafka quotas for `staging`: throttles clients" in posted["body"]
    outputs = dict(line.split("=", 1) for line in pipeline.file("plan", "dotenv").read_text(encoding="utf-8").splitlines())
    assert (outputs["create"], outputs["applyable"]) == ("5", "true")

    pipeline.clone.git("checkout", "-q", "main")
    merged = "d4" * 20
    gitlab.pulls = [merge_request(NUMBER, HEAD, merged_as=merged)]
    applied = pipeline.run("apply", CI_COMMIT_SHA=merged, CI_COMMIT_BRANCH="main")
    (posted,) = gitlab.comments.values()
    assert "Kafka quotas for `staging`: applied" in posted["body"]
    assert TOKEN not in planned.out + planned.err + applied.out + applied.err
    assert applied.code == 0, applied.out + applied.err
    assert raw_quotas.settled(clean_kafka.bootstrap_servers)[CLICKS] == {"producer_byte_rate": 10.0 * 1024**2}
    assert all((pipeline.clone.folder / name).is_file() for name in pipeline.jobs["apply"]["artifacts"]["paths"])

    in_sync = pipeline.run("drift")
    assert in_sync.code == 0, in_sync.err
    raw_quotas.alter(clean_kafka.bootstrap_servers, {CLICKS: {"producer_byte_rate": 7.0 * 1024**2}})
    assert pipeline.run("drift").code == 2
    found = json.loads((pipeline.clone.folder / "drift.json").read_text(encoding="utf-8"))
    assert [one["class"] for one in found["entities"] if one["class"] != "in-sync"] == ["differs"]

    unseen = pipeline.run("apply", CI_COMMIT_BRANCH="main", STEP_DOWN="2", WATCH=f"1=metrics+http://127.0.0.1:{refusing_port()}")
    assert (unseen.code, "127.0.0.1" in unseen.err) == (1, True)
    assert raw_quotas.settled(clean_kafka.bootstrap_servers)[CLICKS] == {"producer_byte_rate": 7.0 * 1024**2}
