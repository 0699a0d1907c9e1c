"""Runs the jobs of a workflow: their own scripts in their own order, by their own shell.

What GitHub does is done as its documentation says: conditions, matrices, needs, outputs, environment files and summaries; its
documented limits on annotations and summaries are asserted. It is for many runs of a second of processor time each, where act
needs six: calls of other workflows, secrets and environments are not done here, and the actions of others have stand-ins.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.command import environment, warm_process
from tests.support.workflow_expressions import Expressions, text_of

ANNOTATION = re.compile(r"^::(error|warning|notice)\b[^\n]*$", re.MULTILINE)
_OF_THE_TOOL = {"repository": "OWNER/kafka-quotas", "ref": "0" * 40}
_OF_A_KIND, _IN_A_JOB, _SUMMARY = 10, 50, 1024 * 1024


@dataclass(kw_only=True)
class StepRun:
    """One step. ``outcome``: ``success``, ``failure`` or ``skipped``."""

    name: str
    outcome: str = "skipped"
    out: str = ""
    err: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    @property
    def annotations(self) -> list[str]:
        """The lines that GitHub makes annotations of."""
        return [match[0] for match in ANNOTATION.finditer(self.out)]


@dataclass(kw_only=True)
class JobRun:
    """One job, for one entry of its matrix."""

    job: str
    matrix: dict[str, Any]
    result: str = "skipped"
    steps: list[StepRun] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)

    def step(self, name: str) -> StepRun:
        """The step of this name or id."""
        return next(one for one in self.steps if one.name == name)

    @property
    def log(self) -> str:
        """Everything that was printed."""
        return "".join(f"[{one.name}: {one.outcome}]\n{one.out}{one.err}" for one in self.steps)

    @property
    def summary(self) -> str:
        """What the page of the run shows."""
        return "".join(one.summary for one in self.steps)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where it runs: the remote repository, GitHub's own variables, and steps that are not run (what they install is there)."""

    remote: Path
    folder: Path
    github: Mapping[str, Any]
    variables: Mapping[str, str]
    left_out: Collection[str] = ("Install kafka-quotas",)


def run_workflow(path: Path, machine: Machine, *, inputs: Mapping[str, Any] | None = None) -> dict[str, list[JobRun]]:
    """Every job in the order of its needs, each with its matrix. Inputs that are not given have their defaults.

    A workflow that is not called must be one for the event.
    """
    document = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    events = document[True]
    assert {"workflow_call", machine.github.get("event_name", "workflow_call")} & set(events)
    declared = (events.get("workflow_call") or events.get("workflow_dispatch") or {}).get("inputs", {})
    assert not set(inputs or {}) - set(declared)
    given = {name: one.get("default") for name, one in declared.items()} | dict(inputs or {})
    done: dict[str, list[JobRun]] = {}
    for name, job in document["jobs"].items():
        needed = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        needs = {other: {"result": _together(done[other]), "outputs": _last_outputs(done[other])} for other in needed}
        status = "success" if all(one["result"] == "success" for one in needs.values()) else "failure"
        contexts = {"github": machine.github, "inputs": given, "secrets": {}, "needs": needs}
        if not Expressions(contexts, status=status).holds(job.get("if", True)):
            done[name] = [JobRun(job=name, matrix={})]
            continue
        rows = Expressions(contexts).filled(job.get("strategy", {}).get("matrix", {}).get("include", [{}]))
        done[name] = [_Job(name, job, document, machine, {**contexts, "matrix": row}).run() for row in rows]
    return done


class _Job:
    def __init__(
        self, name: str, job: Mapping[str, Any], document: Mapping[str, Any], machine: Machine, contexts: dict[str, Any]
    ) -> None:
        self._job = job
        self._document = document
        self._machine = machine
        self._ran = JobRun(job=name, matrix=contexts["matrix"])
        self._home = _fresh(machine.folder, name)
        self._workspace = self._home / "workspace"
        self._temp = self._home / "temp"
        for folder in (self._workspace, self._temp):
            folder.mkdir(parents=True, exist_ok=True)
        self._steps: dict[str, Any] = {}
        self._contexts = {**contexts, "steps": self._steps, "runner": {"temp": str(self._temp), "os": "Linux"}, "env": {}}
        self._contexts["job"] = {"workflow_repository": _OF_THE_TOOL["repository"], "workflow_sha": _OF_THE_TOOL["ref"]}
        self._status = "success"
        self._set: dict[str, str] = {}

    def expressions(self) -> Expressions:
        return Expressions(self._contexts, status=self._status)

    def run(self) -> JobRun:
        filled = self.expressions().filled
        for number, step in enumerate(self._job["steps"]):
            ran = StepRun(name=step.get("id") or step.get("name") or step.get("uses") or str(number))
            self._ran.steps.append(ran)
            if self.expressions().holds(step.get("if", True)):
                self._one(step, ran)
                if ran.outcome == "failure":
                    self._status = "failure"
            if "id" in step:
                self._steps[step["id"]] = {"outputs": ran.outputs, "outcome": ran.outcome, "conclusion": ran.outcome}
        self._ran.result = self._status
        self._ran.outputs = {name: text_of(filled(value)) for name, value in self._job.get("outputs", {}).items()}
        assert sum(len(one.annotations) for one in self._ran.steps) <= _IN_A_JOB
        return self._ran

    def _one(self, step: Mapping[str, Any], ran: StepRun) -> None:
        if "uses" in step:
            self._used(step, ran)
        elif step.get("name") in self._machine.left_out:
            ran.outcome = "success"
        else:
            self._script(step, ran)

    def _used(self, step: Mapping[str, Any], ran: StepRun) -> None:
        given = self.expressions().filled(step.get("with", {}))
        ran.outcome = "success"
        match step["uses"].partition("@")[0]:
            case "actions/checkout":
                if "repository" in given:
                    # This repository at the workflow's commit, for the step that is left out. GitHub's action empties a folder.
                    assert not os.path.lexists(self._workspace / ".kafka-quotas")
                    assert given == {**_OF_THE_TOOL, "path": ".kafka-quotas", "persist-credentials": False}
                    return
                assert given == {"fetch-depth": 0, "persist-credentials": False}
                self._check_out()
            case "actions/upload-artifact":
                if (source := Path(given["path"])).exists():
                    kept = self._home / "artifacts" / given["name"]
                    kept.mkdir(parents=True)
                    shutil.copytree(source, kept, dirs_exist_ok=True) if source.is_dir() else shutil.copy(source, kept)
                    self._ran.artifacts[given["name"]] = kept
            case "actions/setup-python" | "actions/setup-java":
                pass
            case other:
                raise ValueError(f"there is no stand-in for {other}")

    def _check_out(self) -> None:
        """As the action does with the whole history: every branch below ``refs/remotes/origin``, and the commit, detached."""
        git = ["git", "-C", str(self._workspace)]
        for command in (
            [*git, "init", "--quiet", "--initial-branch=main"],
            [*git, "remote", "add", "origin", str(self._machine.remote)],
            [*git, "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*", str(self._machine.github["sha"])],
            [*git, "checkout", "--quiet", "--detach", str(self._machine.github["sha"])],
        ):
            subprocess.run(command, env=self._environment({}), check=True, capture_output=True, timeout=300)

    def _script(self, step: Mapping[str, Any], ran: StepRun) -> None:
        files = {name: _fresh(self._home, name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
        for file in files.values():
            file.touch()
        shell = step.get("shell") or self._document.get("defaults", {}).get("run", {}).get("shell")
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail"] if shell == "bash" else ["bash", "-e"]
        script = _fresh(self._home, "script")
        script.write_text(text_of(self.expressions().filled(step["run"])), encoding="utf-8")
        declared = {**self._job.get("env", {}), **step.get("env", {})}
        own = {name: text_of(value) for name, value in self.expressions().filled(declared).items()}
        extra = {**self._set, **own, **{name: str(file) for name, file in files.items()}}
        done = subprocess.run(
            [*command, str(script)],
            cwd=self._workspace,
            env=self._environment(extra),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        ran.outcome = "success" if done.returncode == 0 else "failure"
        ran.out, ran.err = done.stdout, done.stderr
        ran.outputs = _pairs(files["GITHUB_OUTPUT"].read_text(encoding="utf-8"))
        ran.summary = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        self._set |= _pairs(files["GITHUB_ENV"].read_text(encoding="utf-8"))
        assert len(ran.summary.encode()) <= _SUMMARY
        for kind in ("error", "warning", "notice"):
            assert sum(line.startswith(f"::{kind}") for line in ran.annotations) <= _OF_A_KIND

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        ours = {
            "CI": "true",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GITHUB_ACTIONS": "true",
            "GITHUB_SHA": str(self._machine.github["sha"]),
            "GITHUB_WORKSPACE": str(self._workspace),
            "PATH": f"{warm_process().programs()}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "RUNNER_TEMP": str(self._temp),
        }
        kept = {name: value for name, value in environment().items() if not name.startswith(("GITHUB_", "GIT_", "ACTIONS_"))}
        return {**kept, **ours, **self._machine.variables, **extra}


def _pairs(text: str) -> dict[str, str]:
    """The file of outputs: ``name=value``, or ``name<<END`` with lines up to that word."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, sign, rest = re.fullmatch(r"([\w-]+)(=|<<)(.*)", line).groups()  # type: ignore[union-attr]  # anything else is a fault
        found[name] = rest if sign == "=" else "\n".join(iter(lines.__next__, rest))
    return found


def _together(runs: list[JobRun]) -> str:
    results = {one.result for one in runs}
    return "failure" if "failure" in results else "success" if results == {"success"} else "skipped"


def _last_outputs(runs: list[JobRun]) -> dict[str, str]:
    return {name: value for one in runs for name, value in one.outputs.items()}


def _fresh(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return next(path for number in range(10_000) if not (path := folder / f"{name}-{number}").exists())
