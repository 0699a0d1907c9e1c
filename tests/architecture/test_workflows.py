"""Workflows hold no more rights than they need and run only code pinned by commit: this repository's own, and those for users."""

import functools
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
import yaml

import reconciler
from tests.support.git_repository import GitRepository
from tests.support.workflow_expressions import Expressions

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
REUSABLE = [path for path in WORKFLOWS if path.name not in {"ci.yml", "release.yml"}]
TEMPLATES = sorted((ROOT / "examples" / "gitops-repository" / ".github" / "workflows").glob("*.y*ml"))
USES = re.compile(r"^\s*(?:- )?uses:\s*(?P<what>.*)$", re.MULTILINE)
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")
PLACEHOLDER = re.compile(r"OWNER/kafka-quotas/\.github/workflows/(?P<name>[\w-]+\.yml)@0{40} # v[\d.]+")
MAY_WRITE = {
    "apply.yml": {"contents", "pull-requests"},
    "code-scanning.yml": {"security-events"},
    "fork.yml": {"pull-requests"},
    "plan.yml": {"checks", "pull-requests"},
    "release.yml": {"attestations", "contents", "id-token", "packages"},
    "snapshot.yml": {"contents"},
    "traffic.yml": {"contents"},
}
"""Everything else reads, and reads the contents only."""
VERIFIES = {"backtest.yml", "drift.yml", "fork.yml", "plan.yml", "snapshot.yml", "traffic.yml"}
"""These ask which run stored a reference."""


@functools.cache
def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return path.name


def steps(path: Path) -> list[dict]:
    return [step for job in read(path)["jobs"].values() for step in job.get("steps", [])]


def granted(path: Path) -> dict[str, set[str]]:
    """What the jobs of a workflow may, by right."""
    rights: dict[str, set[str]] = {}
    for job in read(path)["jobs"].values():
        for right, degree in job["permissions"].items():
            rights.setdefault(right, set()).add(degree)
    return rights


@pytest.mark.parametrize("path", WORKFLOWS, ids=named)
def test_every_action_is_pinned_by_commit_with_its_version_beside_it(path):
    used = [match["what"] for match in USES.finditer(path.read_text(encoding="utf-8")) if not match["what"].startswith("./")]

    assert used
    assert [what for what in used if not PINNED.fullmatch(what)] == []


@pytest.mark.parametrize("path", [*WORKFLOWS, *TEMPLATES], ids=named)
def test_a_workflow_starts_without_permissions_and_writes_only_what_it_must(path):
    assert read(path)["permissions"] == {}
    called = {match["name"] for match in PLACEHOLDER.finditer(path.read_text(encoding="utf-8"))} or {path.name}
    may_write = set().union(*(MAY_WRITE.get(name, set()) for name in called))
    rights = granted(path)
    assert {right for right, degrees in rights.items() if "write" in degrees} == may_write
    may_read = {"contents", "actions"} if called & VERIFIES else {"contents"}
    assert {right for right, degrees in rights.items() if "read" in degrees} <= may_read


@pytest.mark.parametrize("path", WORKFLOWS, ids=named)
def test_every_job_ends_by_itself_and_no_checkout_keeps_its_token(path):
    jobs = read(path)["jobs"]
    checkouts = [step.get("with", {}) for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]

    assert [name for name, job in jobs.items() if "timeout-minutes" not in job] == []
    assert checkouts
    assert all(options.get("persist-credentials") is False for options in checkouts)


@pytest.mark.parametrize("path", TEMPLATES, ids=named)
def test_a_workflow_of_the_template_only_calls_one_that_there_is_with_inputs_that_it_has(path):
    for job in read(path)["jobs"].values():
        match = PLACEHOLDER.match(job["uses"] + " # v0.0")
        assert match is not None
        called = read(ROOT / ".github" / "workflows" / match["name"])
        # PyYAML reads the key "on" as the truth value.
        inputs = called[True]["workflow_call"]["inputs"]
        assert set(job.get("with", {})) <= set(inputs)
        # plan.yml needs its secret only for an input that the template does not set.
        secrets = set() if match["name"] == "plan.yml" else set(called[True]["workflow_call"].get("secrets", {}))
        assert job.get("secrets", {}) == {name: f"${{{{ secrets.{name} }}}}" for name in secrets}
        needed = granted(ROOT / ".github" / "workflows" / match["name"])
        assert {(right, degree) for right, degree in job["permissions"].items()} == {
            (right, "write" if "write" in degrees else "read") for right, degrees in needed.items()
        }


@pytest.mark.parametrize("path", [*REUSABLE, *TEMPLATES], ids=named)
def test_nothing_that_a_stranger_may_write_is_pasted_into_a_script(path):
    scripts = [step["run"] for step in steps(path) if "run" in step]

    assert [script for script in scripts if "${{" in script] == []


@pytest.mark.parametrize("path", REUSABLE, ids=named)
def test_what_a_command_is_told_to_plan_or_apply_is_limited_by_the_trusted_reference(path):
    for step in steps(path):
        for command in re.findall(r"kafka-quotas (plan|apply|drift|validate) ", step.get("run", "")):
            trusted = "--trusted-ref" in step["run"]
            # Code scanning has no base: it shows findings of one commit, and connects to nothing.
            assert trusted or (command, path.name) == ("validate", "code-scanning.yml")


@pytest.mark.parametrize("path", REUSABLE, ids=named)
def test_python_never_looks_for_its_modules_among_the_files_of_a_pull_request(path):
    for step in steps(path):
        # An argument of --python is a path: pip runs itself there as a file, whose folder comes first.
        for options in re.findall(r"(?<![/-])\bpython\d?\b((?: -\w+)*)", step.get("run", "")):
            assert {"-P", "-I"} & set(options.split())


def credentials() -> list[dict]:
    """The settings of every step that lets git log in; they must all be the same."""
    names = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_TOKEN")
    found = [step["env"] for path in REUSABLE for step in steps(path) if "GIT_TOKEN" in step.get("env", {})]
    return [{name: env[name] for name in names} for env in found]


def test_every_step_that_asks_the_remote_can_log_in_and_no_other():
    asks = re.compile(r"\bgit (fetch|push)\b|--write requests")
    asking = [step for path in REUSABLE for step in steps(path) if asks.search(step.get("run", ""))]

    assert len(asking) == len(credentials()) > 5
    assert all("GIT_TOKEN" in step["env"] for step in asking)
    assert all(one == credentials()[0] for one in credentials())


@pytest.mark.parametrize(("host", "given"), [("github.example.org", True), ("evil.example.org", False)])
def test_git_gives_the_token_to_the_server_of_the_repository_only(tmp_path, host, given):
    settings = {**credentials()[0], "GIT_TOKEN": "ghs_token-of-the-run"}
    settings["GIT_CONFIG_KEY_0"] = settings["GIT_CONFIG_KEY_0"].replace("${{ github.server_url }}", "https://github.example.org")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    done = subprocess.run(
        ["git", "credential", "fill"],
        input=f"protocol=https\nhost={host}\n\n",
        cwd=tmp_path,
        env={**kept, **settings, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("password=ghs_token-of-the-run" in done.stdout, done.returncode == 0) == (given, given)


PYTHON = """#!/bin/sh
case "$*" in
  "-P -m venv --without-pip "*) mkdir -p "$5/bin" "$5/lib/python3.11/site-packages" ;;
  *) echo "$*" >> ASKED ;;
esac
"""


def installs(script: str, folder: Path, **variables: str) -> tuple[int, list[str]]:
    """The exit code of a script that installs, and what it asked which pip for."""
    programs, asked = folder / "bin", folder / "asked"
    programs.mkdir(exist_ok=True)
    (programs / "python").write_text(PYTHON.replace("ASKED", str(asked)), encoding="utf-8")
    (programs / "python").chmod(0o755)
    env = {
        **os.environ,
        "GITHUB_SERVER_URL": "https://github.com",
        **variables,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_PATH": str(folder / "path"),
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, asked.read_text(encoding="utf-8").splitlines() if asked.exists() else []


def checked_out(folder: Path) -> str:
    """A commit of the tool where the workflows check it out."""
    return GitRepository(folder / ".kafka-quotas").commit()


def install_steps() -> list[dict]:
    return [step for path in REUSABLE for step in steps(path) if step.get("name") == "Install kafka-quotas"]


def only_what_is_locked(asked: list[str], pip: str) -> bool:
    """Whether pip takes files from an index by their hash only, runs with safe paths, and builds with what is locked."""
    return bool(asked) and all(
        line.startswith(f"-P -m {pip} install ")
        and ("--no-build-isolation" in line or "--only-binary :all:" in line)
        and "--require-hashes" in line
        for line in asked
    )


def test_every_job_installs_its_own_commit_and_locked_dependencies(tmp_path):
    assert len(install_steps()) > 8
    (script,) = {step["run"] for step in install_steps()}
    code, asked = installs(script, tmp_path, REQUIREMENT="", COMMIT=checked_out(tmp_path), LOCK="pipeline.txt")
    assert (code, only_what_is_locked(asked, f"pip --python {tmp_path}/venv/bin/python")) == (0, True), asked
    assert [line.rpartition("/")[2] for line in asked] == ["pipeline.txt"]
    # The steps that follow run what is installed there, and no package that another job left in the machine's Python.
    assert (tmp_path / "path").read_text(encoding="utf-8") == f"{tmp_path / 'venv' / 'bin'}\n"


def test_the_command_of_a_job_runs_from_the_checkout_of_the_tool(tmp_path):
    (script,) = {step["run"] for step in install_steps()}
    commit = checked_out(tmp_path)
    (tmp_path / ".kafka-quotas/requirements").mkdir()
    (tmp_path / ".kafka-quotas/requirements/none.txt").touch()
    (tmp_path / ".kafka-quotas/reconciler").symlink_to(ROOT / "reconciler")
    (tmp_path / "reconciler").mkdir()
    (tmp_path / "reconciler/__main__.py").write_text("raise SystemExit('of the pull request')")
    at = {"RUNNER_TEMP": str(tmp_path), "GITHUB_PATH": str(tmp_path / "path"), "GITHUB_SERVER_URL": "https://github.com"}
    packages = sysconfig.get_path("purelib")
    environment = {**os.environ, **at, "REQUIREMENT": "", "COMMIT": commit, "LOCK": "none.txt"}
    command = ["bash", "-eo", "pipefail", "-c", f'{script}PYTHONPATH={packages} "$RUNNER_TEMP/venv/bin/kafka-quotas" --version']

    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"kafka-quotas {reconciler.__version__}\n"), done.stderr


@pytest.mark.parametrize(
    ("server", "code"), [("https://github.com", 0), ("https://acme.ghe.com", 0), ("https://github.acme.example", 1)]
)
def test_a_server_that_keeps_no_artifacts_is_refused_before_anything_is_installed(server, code, tmp_path):
    (script,) = {step["run"] for step in install_steps()}
    commit = checked_out(tmp_path)

    ended, asked = installs(script, tmp_path, REQUIREMENT="", COMMIT=commit, LOCK="pipeline.txt", GITHUB_SERVER_URL=server)
    assert (ended, bool(asked)) == (code, code == 0)


@pytest.mark.parametrize("path", REUSABLE, ids=named)
def test_no_link_of_the_repository_leads_the_tool_s_checkout_to_another_folder(path, tmp_path):
    for job in read(path)["jobs"].values():
        names = [step.get("name", "") for step in job["steps"]]
        at = names.index("Check out kafka-quotas")
        script = job["steps"][at - 1]["run"]
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        (other / "precious").touch()
        (tmp_path / ".kafka-quotas").symlink_to(other)
        subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, check=True)
        assert not os.path.lexists(tmp_path / ".kafka-quotas")
        assert (other / "precious").exists()


@pytest.mark.parametrize("commit", ["", "0" * 40])
def test_no_job_installs_another_commit_than_that_of_its_workflow(commit, tmp_path):
    (script,) = {step["run"] for step in install_steps()}
    checked_out(tmp_path)

    assert installs(script, tmp_path, REQUIREMENT="", COMMIT=commit, LOCK="pipeline.txt") == (1, [])


@pytest.mark.parametrize("path", REUSABLE, ids=named)
def test_no_step_calls_the_tool_after_an_install_that_failed(path):
    anything = {"head": {"repo": {"full_name": "acme/quotas"}}}
    about = {"repository": "acme/quotas", "event": {"pull_request": anything}}
    for job in read(path)["jobs"].values():
        at = next(n for n, step in enumerate(job["steps"]) if step.get("name") == "Install kafka-quotas")
        done = {job["steps"][at].get("id", ""): {"outcome": "failure", "outputs": {}}}
        after = Expressions({"github": about, "inputs": {}, "steps": done, "matrix": {}}, status="failure")
        running = [step for step in job["steps"][at + 1 :] if after.holds(step.get("if", True))]
        assert [step for step in running if "kafka-quotas " in step.get("run", "")] == []


def test_each_lock_that_a_workflow_names_is_there():
    named = {lock for step in install_steps() for lock in re.findall(r"[\w-]+\.txt", f"{step['env'].get('LOCK')} {step['run']}")}

    assert named == {"build.txt", "pipeline.txt", "pipeline-traffic.txt", "pipeline-spark.txt"}
    assert all((ROOT / "requirements" / lock).is_file() for lock in named)


@pytest.mark.parametrize(
    ("traffic", "spark", "lock", "java"),
    [
        ("", True, "pipeline.txt", False),
        ("reference", True, "pipeline-traffic.txt", False),
        ("folder", False, "pipeline-traffic.txt", False),
        ("folder", True, "pipeline-spark.txt", True),
        ("address", False, "pipeline-spark.txt", True),
    ],
)
def test_a_plan_installs_what_the_traffic_of_its_cluster_needs(traffic, spark, lock, java):
    job = read(ROOT / ".github/workflows/plan.yml")["jobs"]["plan"]
    chosen = Expressions({"matrix": {"traffic": traffic}, "inputs": {"spark": spark, "server-check": "none"}})
    (install,) = (step for step in job["steps"] if step.get("id") == "install")
    (setup,) = (step for step in job["steps"] if step.get("uses", "").startswith("actions/setup-java@"))

    assert chosen.filled(install["env"]["LOCK"]) == lock
    assert chosen.holds(setup["if"]) is java


def test_gitlab_installs_one_commit_and_locked_dependencies(tmp_path):
    lines = read(ROOT / "examples" / "gitops-repository" / ".gitlab-ci.yml")["default"]["before_script"]

    scripts = "\n".join(line for line in lines if "install" in line and "apt-get" not in line)
    code, asked = installs(scripts, tmp_path, KAFKA_QUOTAS_LOCK="pipeline-spark.txt")

    assert (code, only_what_is_locked(asked, "pip")) == (0, True), asked
    assert any('checkout --quiet --detach "$KAFKA_QUOTAS_COMMIT"' in line for line in lines)
