"""Workflows under nektos/act, which is GitHub Actions' own language implemented anew, in its mode without containers.

The actions of others have stand-ins in ``actions/``. Act has no permissions, environments and concurrency, nor the properties
``job.workflow_*``: the workflows get the input ``requirement`` in their place.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler.files import cache_folder

ROOT = Path(__file__).parents[2]
VERSION = "v0.2.89"
CALLED = "OWNER/kafka-quotas@" + "0" * 40
"""The repository and the commit that the template calls workflows of."""
USES = re.compile(r"uses:\s*(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(?:/[\w./-]+)?@(?P<commit>[0-9a-f]{40})\b")
TIMEOUT_S = 600


@dataclass(kw_only=True)
class ActStep:
    """One step that ran. ``outcome``: ``success`` or ``failure``; ``seconds`` are act's own."""

    name: str
    outcome: str = ""
    seconds: float = 0.0
    log: str = ""
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def annotations(self) -> list[str]:
        """The lines that GitHub makes annotations of."""
        return [line for line in self.log.splitlines() if line.startswith(("::error", "::warning", "::notice"))]


@dataclass(kw_only=True)
class ActJob:
    """One job, for one entry of its matrix, with the steps that were not skipped."""

    name: str
    matrix: Mapping[str, Any]
    result: str = ""
    steps: dict[str, ActStep] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """Everything that was printed."""
        return "".join(f"[{step.name}: {step.outcome}]\n{step.log}" for step in self.steps.values())

    @property
    def summary(self) -> str:
        """What the page of the run shows."""
        return "".join(step.summary for step in self.steps.values())


@dataclass(frozen=True, kw_only=True)
class ActRun:
    """How a run ended. ``artifacts`` is the folder with one folder for each."""

    code: int
    jobs: Sequence[ActJob]
    artifacts: Path
    raw: str

    def job(self, start: str) -> ActJob:
        """The one job whose name, below that of the caller, starts so."""
        (found,) = (job for job in self.jobs if job.name.rpartition("/")[2].startswith(start))
        return found

    @property
    def log(self) -> str:
        """Everything that was printed."""
        return "".join(f"== {job.name}: {job.result}\n{job.log}" for job in self.jobs)


@functools.cache
def act_program() -> Path:
    """Act, compiled by Go from its module once, which takes minutes, and kept in the cache folder."""
    folder = cache_folder() / f"act-{VERSION}"
    program = folder / "act"
    if not program.is_file():
        go = shutil.which("go")
        assert go, "these tests need Go 1.25 or newer on PATH (https://go.dev); make test needs none"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as built:
            install = [go, "install", f"github.com/nektos/act@{VERSION}"]
            subprocess.run(install, cwd=built, env={**os.environ, "GOBIN": built}, check=True, timeout=1800)
            (Path(built) / "act").replace(program)
    return program


def linked_requirement(folder: Path) -> Path:
    """A wheel that leads to this source tree and the packages of the tests, for the workflows' input ``requirement``.

    A job's own virtual environment is made and pip installs into it, but a few bytes in place of forty megabytes.
    """
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    name = "kafka_quotas_linked-0"
    files = {
        "kafka_quotas_linked.pth": f"{ROOT}\n{packages}\n",
        f"{name}.dist-info/METADATA": "Metadata-Version: 2.1\nName: kafka-quotas-linked\nVersion: 0\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/entry_points.txt": "[console_scripts]\nkafka-quotas = reconciler.cli.main:entry_point\n",
    }
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{name}.dist-info/RECORD", "".join(f"{path},,\n" for path in [*files, f"{name}.dist-info/RECORD"]))
    return wheel


@dataclass(frozen=True, kw_only=True)
class ActMachine:
    """What every run of a repository shares. ``environ`` comes on top of this process's environment in every job."""

    folder: Path
    bare: Path
    repository: str
    token: str
    api_url: str
    environ: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict)

    def run(self, event_name: str, event: Mapping[str, Any], *, commit: str, workflow: str, number: int) -> ActRun:
        """Run the workflow of this file name, as it is in the commit, for this event."""
        folder = self.folder / f"run-{number}"
        clone, artifacts = folder / "clone", self.folder / "artifacts"
        (artifacts / str(number)).mkdir(parents=True)
        (folder / "empty").mkdir(parents=True)
        (folder / "event.json").write_text(json.dumps(event), encoding="utf-8")
        (folder / "secrets").write_text("".join(f"{key}={json.dumps(text)}\n" for key, text in self.secrets.items()))
        git = ["git", "-c", "advice.detachedHead=false"]
        subprocess.run([*git, "clone", "--quiet", "--shared", "--no-checkout", str(self.bare), str(clone)], check=True)
        subprocess.run([*git, "-C", str(clone), "fetch", "--quiet", "origin", commit], check=True)
        subprocess.run([*git, "-C", str(clone), "checkout", "--quiet", commit], check=True)
        command = [
            *(act_program(), event_name, "--json", "--no-skip-checkout", "--no-cache-server", "--directory", clone),
            *("--workflows", clone / ".github" / "workflows" / workflow, "--eventpath", folder / "event.json"),
            *("--platform", "ubuntu-24.04=-self-hosted", "--platform", "self-hosted=-self-hosted"),
            *("--use-new-action-cache", "--action-cache-path", folder / "cache"),
            *("--secret-file", folder / "secrets", "--secret", f"GITHUB_TOKEN={self.token}", "--defaultbranch", "main"),
            *(f"--local-repository={name}={place}" for name, place in _stand_ins()),
            f"--local-repository={CALLED}={_tool_folder(self.folder)}",
            *("--env", f"GITHUB_REPOSITORY={self.repository}", "--env", f"GITHUB_RUN_ID={number}"),
            *("--env", f"GITHUB_API_URL={self.api_url}", "--env", f"SHA_REF={commit}", "--actor", "somebody"),
        ]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "GIT_", "ACTIONS_", "PYTEST_")) and k != "CI"}
        given = {
            "GIT_CONFIG_NOSYSTEM": "1",
            # Act gives each step a terminal, which GitHub does not.
            "COLUMNS": "1000",
            "NO_COLOR": "1",
            "STAND_IN_ARTIFACTS": str(artifacts),
            "STAND_IN_PYTHON": str(_python_folder(self.folder)),
            **self.environ,
        }
        with (folder / "log.jsonl").open("wb") as log:
            done = subprocess.run(
                [str(one) for one in command],
                cwd=folder / "empty",
                env={**kept, **given},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_S,
                check=False,
            )
        raw = (folder / "log.jsonl").read_text(encoding="utf-8", errors="replace")
        return ActRun(code=done.returncode, jobs=_jobs(raw), artifacts=artifacts / str(number), raw=raw)


def _python_folder(folder: Path) -> Path:
    """A folder with ``python``: the interpreter of the tests without their packages."""
    place = folder / "python"
    if not place.exists():
        place.mkdir()
        base = Path(getattr(sys, "_base_executable", sys.executable))
        (place / "python").symlink_to(base.resolve())
    return place


def _tool_folder(folder: Path) -> Path:
    """A folder with this repository's workflows and its action alone: act copies all that is there."""
    place = folder / "tool"
    if not place.exists():
        shutil.copytree(ROOT / ".github", place / ".github")
    return place


@functools.cache
def _stand_ins() -> tuple[tuple[str, Path], ...]:
    """Every action that a workflow of this repository uses, at its commit, with the folder of its stand-in."""
    actions = Path(__file__).parent / "actions"
    texts = (path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github").rglob("*.yml")))
    used = {(match["owner"], match["name"], match["commit"]) for text in texts for match in USES.finditer(text)}
    found = [(f"{owner}/{name}@{commit}", actions / name) for owner, name, commit in sorted(used)]
    return tuple((key, place) for key, place in found if place.is_dir())


def _jobs(raw: str) -> list[ActJob]:
    """The jobs of act's log, in the order in which they first printed."""
    jobs: dict[tuple[str, str], ActJob] = {}
    for record in _records(raw):
        if not record.get("job"):
            continue
        matrix = record.get("matrix") or {}
        job = jobs.setdefault((record["job"], json.dumps(matrix)), ActJob(name=record["job"], matrix=matrix))
        job.result = record.get("jobResult", job.result)
        if record.get("stage") != "Main" or not record.get("step"):
            continue
        name = record["step"].partition("@")[0]
        step = job.steps.setdefault(name, ActStep(name=name))
        _add(record, step)
    return list(jobs.values())


def _add(record: Mapping[str, Any], step: ActStep) -> None:
    whole = len(record.get("stepID", ())) == 1
    match record:
        case {"raw_output": True, "msg": text}:
            step.log += f"{text}\n" if not text.endswith("\n") else text
        case {"command": "summary", "content": text}:
            step.summary += text
        case {"command": "set-output", "name": name, "arg": value}:
            step.outputs[name] = value
        case {"command": str(), "raw": text}:
            step.log += f"{text.strip()}\n"
        case {"stepResult": outcome} if whole:
            step.outcome = outcome
            step.seconds = record.get("executionTime", 0) / 1e9


def _records(raw: str) -> Iterator[dict[str, Any]]:
    for line in raw.splitlines():
        if line.startswith("{"):
            yield json.loads(line)
