"""A repository on a forge, as far as workflows see it: a bare remote, branches and pull requests, and GitHub's API beside it."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.features.pull_requests.verify_ref import artifact_name
from tests.support.git_repository import GitRepository
from tests.support.github_server import NUMBER, REPOSITORY, TOKEN, GitHubServer, pull_request, workflow_run
from tests.support.workflow_runner import JobRun, Machine, run_workflow

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"
HERE = {"default_branch": "main", "full_name": REPOSITORY}
"""The repository, in events."""


class Forge:
    """``work`` is somebody's clone; ``push`` and ``propose`` bring its commits to the remote."""

    def __init__(self, folder: Path, github: GitHubServer) -> None:
        self.folder = folder
        self.github = github
        self.remote = folder / "remote.git"
        self.work = GitRepository(folder / "work")
        self.work.git("init", "-q", "--bare", str(self.remote))
        self.work.git("-C", str(self.remote), "config", "uploadpack.allowAnySHA1InWant", "true")
        self.work.git("remote", "add", "origin", str(self.remote))
        github.head_of = lambda branch: self.ref(f"refs/heads/{branch}")

    def push(self, at: datetime.datetime | None = None) -> str:
        """What is in the clone becomes the newest commit of main."""
        commit = self.work.commit(at=at)
        self.work.git("push", "-q", "origin", "HEAD:refs/heads/main")
        return commit

    def propose(self, *, label: str = "acme:change") -> tuple[str, str]:
        """A pull request of what is in the clone: its own commit, and the merge that GitHub makes of it."""
        self.work.git("checkout", "-q", "-B", "change")
        head = self.work.commit("a proposal")
        self.work.git("checkout", "-q", "--detach", "main")
        self.work.git("merge", "-q", "--no-ff", "-m", "a merge", head)
        merge = self.work.git("rev-parse", "HEAD")
        self.work.git("push", "-q", "-f", "origin", f"{head}:refs/pull/{NUMBER}/head", f"{merge}:refs/pull/{NUMBER}/merge")
        self.work.git("checkout", "-q", "main")
        self.github.pulls = [pull_request(NUMBER, head, label=label)]
        return head, merge

    def merge(self) -> str:
        """The pull request becomes the newest commit of main."""
        self.work.git("merge", "-q", "--no-ff", "-m", "a merge", "change")
        commit = self.push()
        self.github.pulls = [pull_request(NUMBER, self.work.git("rev-parse", "change"), merged_as=commit)]
        return commit

    def ref(self, name: str) -> str:
        """What a reference of the remote is at; empty when there is none."""
        return self.work.git("ls-remote", str(self.remote), name).partition("\t")[0]

    def changes(self, ref: str) -> str:
        """What a reference of the remote changes of the commit here."""
        self.work.git("fetch", "-q", "origin", ref)
        return self.work.git("diff", "--unified=0", "HEAD", "FETCH_HEAD")

    def store(self, ref: str, files: Mapping[str, str], *, run: int | None = None) -> str:
        """A commit of these files at a reference, as the workflows store it; with a run that did it, unless one is named."""
        number = run or len(self.github.runs) + 1
        listing = ""
        for name, text in files.items():
            blob = self._git_with(text, "hash-object", "-w", "--stdin")
            listing += f"100644 blob {blob}\t{name}\n"
        tree = self._git_with(listing, "mktree")
        message = f"a state\n\nKafka-Quotas-Reference: {ref}\nKafka-Quotas-Run: {number}\n"
        commit = self._git_with(message, "commit-tree", tree)
        self.work.git("push", "-q", "-f", "origin", f"{commit}:{ref}")
        if run is None:
            self.github.runs[number] = workflow_run(number, event="schedule", commit=self.ref("refs/heads/main"))
            self.github.artifacts[number] = {artifact_name(commit)}
        return commit

    def _git_with(self, text: str, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.work.folder), "-c", "user.name=w", "-c", "user.email=w@localhost", *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def pushed(self, commit: str, before: str = "") -> dict[str, Any]:
        """GitHub's context of a push of this commit to main; ``before``: what main was at."""
        event = {"ref": "refs/heads/main", "before": before, "after": commit, "deleted": False, "repository": HERE}
        return {"event_name": "push", "ref": "refs/heads/main", "sha": commit, "event": event}

    def scheduled(self) -> dict[str, Any]:
        """That of a workflow at its hour, which is always for the newest commit of main."""
        event = {"schedule": "17 5 * * *", "repository": HERE}
        return {"event_name": "schedule", "ref": "refs/heads/main", "sha": self.ref("refs/heads/main"), "event": event}

    def proposed(self, head: str, merge: str, *, owner: str = "acme") -> dict[str, Any]:
        """That of the pull request, on the merge."""
        proposal = {
            "number": NUMBER,
            "head": {"sha": head, "ref": "change", "repo": {"full_name": f"{owner}/quotas"}},
            "base": {"ref": "main"},
        }
        event = {"number": NUMBER, "pull_request": proposal, "repository": HERE}
        ref = f"refs/pull/{NUMBER}/merge"
        return {"event_name": "pull_request", "ref": ref, "sha": merge, "base_ref": "main", "event": event}

    def planned_of_fork(self, head: str, *, owner: str = "fork") -> dict[str, Any]:
        """That which follows the run of a fork's pull request; on the newest commit of main."""
        about = {
            "event": "pull_request",
            "head_sha": head,
            "head_branch": "change",
            "head_repository": {"full_name": f"{owner}/quotas", "owner": {"login": owner}},
            "pull_requests": [],
        }
        event = {"workflow_run": about, "repository": HERE}
        return {"event_name": "workflow_run", "ref": "refs/heads/main", "sha": self.ref("refs/heads/main"), "event": event}

    def on_pull_request(self, head: str, merge: str, name: str = "plan.yml", **inputs: Any) -> dict[str, list[JobRun]]:
        """Run a workflow for the pull request."""
        return self.run(name, self.proposed(head, merge), **inputs)

    def on_fork_run(self, head: str, name: str = "fork.yml", *, owner: str = "fork", **inputs: Any) -> dict[str, list[JobRun]]:
        """Run a workflow after the run that a fork's pull request had."""
        return self.run(name, self.planned_of_fork(head, owner=owner), **inputs)

    def run(self, name: str, github: Mapping[str, Any], **inputs: Any) -> dict[str, list[JobRun]]:
        """Run a workflow of the clone, or else of this repository, as GitHub would for this event."""
        own = self.work.folder / ".github" / "workflows" / name
        chosen = {one.replace("_", "-"): value for one, value in inputs.items()}
        number = len(self.github.runs) + 1
        # A workflow of this repository is called by the template's of that name.
        caller = name if own.is_file() else f"quotas-{name}"
        self.github.runs[number] = workflow_run(number, event=github["event_name"], commit=str(github["sha"]), workflow=caller)
        done = run_workflow(own if own.is_file() else WORKFLOWS / name, self.machine(github, run=number), inputs=chosen)
        self.github.artifacts[number] = {name for runs in done.values() for one in runs for name in one.artifacts}
        return done

    def machine(self, github: Mapping[str, Any], *, run: int = 1) -> Machine:
        """The machine of a run for this event."""
        event = self.folder / "event.json"
        event.write_text(json.dumps(github["event"]), encoding="utf-8")
        return Machine(
            remote=self.remote,
            folder=self.folder / "runs",
            github={
                "repository": REPOSITORY,
                "token": TOKEN,
                "base_ref": "",
                "server_url": "https://github.example.org",
                **github,
            },
            variables={
                "GITHUB_API_URL": self.github.url,
                "GITHUB_EVENT_NAME": github["event_name"],
                "GITHUB_EVENT_PATH": str(event),
                "GITHUB_REPOSITORY": REPOSITORY,
                "GITHUB_RUN_ID": str(run),
                "GITHUB_SERVER_URL": "https://github.example.org",
            },
        )
