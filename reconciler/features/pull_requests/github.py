"""GitHub's REST API (github.com or GitHub Enterprise), and what the environment and the event file of a workflow run name.

The forms are those of GitHub's OpenAPI description (``issue-comment`` and others) and of its webhooks.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final, Self

from reconciler.errors import FileAccessError, ForgeError, UsageError
from reconciler.features.pull_requests.comment_verdict import StatusCheck
from reconciler.features.pull_requests.forge import Forge, Job, Request, moment_of, quoted, text_of
from reconciler.features.pull_requests.line_edits import LinePlace
from reconciler.features.pull_requests.rest_api import read_token
from reconciler.http import api_address
from reconciler.model import MergedRequest, escaped
from reconciler.ports import Clock

_ACTIONS: Final = "github-actions[bot]"
"""Who comments with the token of a workflow. Such a token cannot ask who it is, and no user can have a name in brackets."""

_PUBLIC: Final = "https://api.github.com"
_VERSION: Final = "2022-11-28"
"""Of the API, as GitHub Enterprise Server from 3.9 on has it, too."""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_-]{1,39}/(?!\.\.?$)[A-Za-z0-9._-]{1,100}")
_DECISIONS: Final = ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")
"""The states of reviews that decide. A comment does not take back an approval."""
_NUMBER: Final = re.compile(r"[0-9]{1,20}")


class GitHub(Forge):
    """A repository on GitHub, and its pull requests."""

    title: ClassVar = "GitHub"
    comments_path: ClassVar = "/issues/{number}/comments?"
    comment_path: ClassVar = "/issues/comments/{id}"
    reviews_path: ClassVar = "/pulls/{number}/comments"
    review_path: ClassVar = "/pulls/comments/{id}"
    diffs_path: ClassVar = "/pulls/{number}/files"
    diff_fields: ClassVar = ("filename", "previous_filename", "patch")
    author: ClassVar = ("user", "login")
    requests_path: ClassVar = "/pulls"
    branch_fields: ClassVar = ("head", "base", "body")
    closing: ClassVar = ("state", "closed")
    newest: ClassVar = ("head", "sha")
    commit_variable: ClassVar = "GITHUB_SHA"
    starter_variables: ClassVar = ("GITHUB_TRIGGERING_ACTOR", "GITHUB_ACTOR")
    login_variable: ClassVar = "GITHUB_TOKEN"
    subject: ClassVar = "the repository, pull request or comment"
    needed: ClassVar = (
        "The token needs to read the pull request, to write its comments and to write checks (in a workflow: permissions: "
        "pull-requests: write, checks: write)"
    )

    @classmethod
    def connect(cls, environment: Mapping[str, str], *, clock: Clock, patience: float) -> Self:
        """The repository that the environment names. Raises ``UsageError`` and ``FileAccessError``."""
        address = api_address(environment.get("GITHUB_API_URL") or _PUBLIC, api="GitHub's API", example=_PUBLIC)
        repository = environment.get("GITHUB_REPOSITORY")
        if not repository:
            raise UsageError("the repository is not known. Set GITHUB_REPOSITORY to OWNER/NAME")
        if not _REPOSITORY.fullmatch(repository):
            raise UsageError(f"a repository is OWNER/NAME, not {escaped(repository)!r}")
        made = cls(address, read_token(environment, cls.login_variable), clock=clock, patience=patience)
        made.repository = repository
        return made

    @classmethod
    def job(cls, environment: Mapping[str, str]) -> Job:
        """The run and its event. Raises ``FileAccessError`` for a file that cannot be read or is not an event."""
        server, repository, run = (environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
        known, event = server and repository, environment.get("GITHUB_EVENT_PATH")
        return dataclasses.replace(
            job_of_event(_read_event(event)) if event else Job(),
            repository=repository or None,
            link=f"{server}/{repository}/actions/runs/{run}" if known and _NUMBER.fullmatch(run) else None,
            files=f"{server}/{repository}/blob" if known else None,
        )

    def headers(self, token: str) -> dict[str, str]:
        """Return the headers for this version of the API."""
        return {"accept": "application/vnd.github+json", "authorization": f"token {token}", "x-github-api-version": _VERSION}

    def whoami(self) -> str:
        """Return the login of the token, and that of workflows when the token may not ask for its own."""
        try:
            return super().whoami()
        except ForgeError as error:
            if error.status in (403, 404):
                return _ACTIONS
            raise

    def read(self, number: int) -> Request:
        """One pull request."""
        doing = f"read pull request {number} of {self.repository}"
        match self.get(f"{self.path}/pulls/{number}", doing=doing):
            case {"head": {"sha": str(commit), **head}}:
                of = text_of(head, "repo", "full_name") or ""
                return Request(number=number, commit=commit, address="", is_fork=of.lower() != self.repository.lower())
        raise self.unexpected(doing)

    def set_status(self, commit: str, name: str, check: StatusCheck, address: str | None) -> None:
        """A check run: only these know *neutral* and *action required*. Of two with one name the newer counts."""
        document: dict[str, object] = {
            "name": name,
            "head_sha": commit,
            "status": "completed",
            "conclusion": check.conclusion.value,
            "output": {"title": check.title, "summary": check.summary or check.title},
        }
        more = {"details_url": address} if address else {}
        doing = f"set the status {name} of commit {commit} of {self.repository}"
        self.send("POST", f"{self.path}/check-runs", document | more, doing=doing)

    def merged(self, number: int) -> MergedRequest:
        """Read the pull request and its reviews. A later review of an account takes the place of an earlier one."""
        doing = f"read who approved pull request {number} of {self.repository}"
        pull = self.get(f"{self.path}/pulls/{number}", doing=doing)
        decisions = {
            login: state
            for review in self.pages(f"{self.path}/pulls/{number}/reviews?per_page=100", doing=doing)
            if (login := text_of(review, "user", "login")) and (state := text_of(review, "state")) in _DECISIONS
        }
        return MergedRequest(
            source=f"GitHub's REST API, {self.path}/pulls/{number} and its reviews",
            number=number,
            url=text_of(pull, "html_url"),
            author=text_of(pull, "user", "login"),
            approvers=tuple(sorted(login for login, state in decisions.items() if state == "APPROVED")),
            merged_by=text_of(pull, "merged_by", "login"),
            merged=moment_of(pull, "merged_at"),
            # Of an open one GitHub has the commit of a trial.
            merge_commit=text_of(pull, "merge_commit_sha") if text_of(pull, "merged_at") else None,
        )

    def first_comment(self, thread: object) -> tuple[object, str, object] | None:
        """A comment itself: GitHub lists no threads."""
        path = text_of(thread, "path")
        return (thread, path, thread.get("line")) if isinstance(thread, dict) and path is not None else None

    def position(self, request: Request, place: LinePlace) -> dict[str, object]:
        """The new side of the newest commit."""
        return {"commit_id": request.commit, "side": "RIGHT", "path": place.path, "line": place.line}

    def candidates(self, job: Job, doing: str) -> Iterator[tuple[int, bool]]:
        """Find pull requests by the branch of a fork that a run was about, else by the commit."""
        if job.commit is None:
            raise UsageError(f"which pull request? The event of this run does not name one. Give its number with {self.option}")
        by_head = job.head is not None and not job.pushed
        path = f"pulls?state=open&head={quoted(job.head or '')}&" if by_head else f"commits/{job.commit}/pulls?"
        for document in self.pages(f"{self.path}/{path}per_page=100", doing=doing):
            match document:
                case {"number": int(number), "head": {"sha": str(newest)}, "merged_at": merged, "merge_commit_sha": by}:
                    if by_head and newest == job.commit:
                        yield number, True
                    elif not by_head and merged:
                        yield number, by == job.commit
                case _:
                    raise self.unexpected(doing)

    def from_branch(self, branch: str) -> str:
        """A branch of the repository itself."""
        return f"state=all&head={quoted(self.repository.partition('/')[0])}:{quoted(branch)}"

    @property
    def path(self) -> str:
        """The path of the repository."""
        return f"/repos/{self.repository}"


def _read_event(name: str) -> object:
    try:
        return json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileAccessError(f"cannot read {name}, the event of this run: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FileAccessError(f"{name} is not the event of a workflow run: {error}") from error


def job_of_event(document: object) -> Job:
    """Return what an event names: ``pull_request``, ``workflow_run`` or ``push``, as in GitHub's webhooks."""
    match document:
        case {"pull_request": {"number": int(number), **pull}}:
            return Job(request=number, commit=_commit(text_of(pull, "head", "sha")))
        case {"workflow_run": {"pull_requests": [{"number": int(number)}], **run}}:
            return Job(request=number, commit=_commit(text_of(run, "head_sha")))
        case {"workflow_run": {**run}}:
            owner, branch = text_of(run, "head_repository", "owner", "login"), text_of(run, "head_branch")
            head = f"{owner}:{branch}" if owner is not None and branch is not None else None
            return Job(commit=_commit(text_of(run, "head_sha")), head=head, pushed=run.get("event") == "push")
        case {"ref": str(), "after": str(after)}:
            return Job(commit=_commit(after), pushed=True)
    return Job()


def _commit(text: str | None) -> str | None:
    return text if text is not None and _COMMIT.fullmatch(text) else None
