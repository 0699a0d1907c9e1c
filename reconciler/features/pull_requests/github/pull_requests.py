"""Pull requests and the runs of workflows: which pull request a commit or a run belongs to, its comments, and what started a run.

The forms are those of GitHub's OpenAPI description (``issue-comment`` and others). A run knows its pull request from GitHub's
environment variables and the file of its event.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError, ForgeError, UsageError
from reconciler.features.pull_requests.github.api import GitHubApi
from reconciler.features.pull_requests.posted_comment import Comment
from reconciler.model import escaped

ACTIONS: Final = "github-actions[bot]"
"""Who comments with the token of a workflow. Such a token cannot ask who it is, and no person can have a name in brackets."""

_PAGE: Final = 100
_GONE: Final = frozenset({404, 410})

_GIVE: Final = "Give its number with --pull-request"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_-]{1,39}/(?!\.\.?$)[A-Za-z0-9._-]{1,100}")
_NUMBER: Final = re.compile(r"[0-9]{1,20}")


def repository_name(text: str) -> str:
    """A repository's name of the form ``OWNER/NAME``, unchanged. Raises ``UsageError`` for another form."""
    if not _REPOSITORY.fullmatch(text):
        raise UsageError(f"a repository is OWNER/NAME, not {escaped(text)!r}")
    return text


class PullRequestComments:
    """The comments below one pull request. Every method raises ``ForgeError``."""

    def __init__(self, api: GitHubApi, *, repository: str, number: int) -> None:
        self._api = api
        self._repository = f"/repos/{repository}"
        self._where = f"of pull request {number} of {repository}"
        self._list = f"{self._repository}/issues/{number}/comments"

    def all(self) -> list[Comment]:
        """Every comment, oldest first."""
        doing = f"read the comments {self._where}"
        comments = [_comment(page, doing) for page in self._api.pages(f"{self._list}?per_page=100", doing=doing)]
        # A comment can come twice when others are removed between two pages.
        return sorted({comment.id: comment for comment in comments}.values(), key=lambda comment: comment.id)

    def create(self, body: str) -> Comment:
        """A new comment."""
        doing = f"add a comment to the conversation {self._where}"
        return _comment(self._api.send("POST", self._list, {"body": body}, doing=doing), doing)

    def update(self, comment_id: int, body: str) -> Comment | None:
        """Another body for a comment; ``None`` when the comment is gone."""
        doing = f"change a comment {self._where}"
        try:
            answer = self._api.send("PATCH", f"{self._repository}/issues/comments/{comment_id}", {"body": body}, doing=doing)
        except ForgeError as error:
            if error.status in _GONE:
                return None
            raise
        return _comment(answer, doing)

    def delete(self, comment_id: int) -> None:
        """Remove a comment; one that is gone already is not an error."""
        doing = f"remove a comment {self._where}"
        try:
            self._api.send("DELETE", f"{self._repository}/issues/comments/{comment_id}", None, doing=doing)
        except ForgeError as error:
            if error.status not in _GONE:
                raise

    def whoami(self) -> str | None:
        """The login that the token belongs to; ``None`` when the token cannot ask, as that of a workflow cannot."""
        doing = "ask whose the token is"
        try:
            user = self._api.get("/user", doing=doing)
        except ForgeError as error:
            if error.status in (403, 404):
                return None
            raise
        if isinstance(user, dict) and isinstance(user.get("login"), str):
            return str(user["login"])
        raise unexpected(doing)


class OpenPullRequests:
    """The open pull requests with the same base branch. Every method raises ``ForgeError``."""

    def __init__(self, api: GitHubApi, *, repository: str, number: int) -> None:
        """``number``: the own one."""
        self._api = api
        self._repository = repository
        self._number = number

    def others(self) -> Iterator[int]:
        """The numbers of the others, the last changed first."""
        doing = f"list the open pull requests of {self._repository}"
        match self._api.get(f"/repos/{self._repository}/pulls/{self._number}", doing=doing):
            case {"base": {"ref": str(base)}}:
                query = {"state": "open", "base": base, "sort": "updated", "direction": "desc", "per_page": 100}
            case _:
                raise unexpected(doing)
        for document in self._api.pages(f"/repos/{self._repository}/pulls?{urllib.parse.urlencode(query)}", doing=doing):
            match document:
                case {"number": int(number)}:
                    if number != self._number:
                        yield number
                case _:
                    raise unexpected(doing)

    def first_comments(self, number: int) -> list[Comment]:
        """The first hundred comments of one, the oldest first."""
        doing = f"read the comments of pull request {number} of {self._repository}"
        path = f"/repos/{self._repository}/issues/{number}/comments?per_page={_PAGE}"
        return [_comment(document, doing) for document in islice(self._api.pages(path, doing=doing), _PAGE)]

    def name(self, number: int) -> str:
        """``pull request #12``."""
        return f"pull request #{number}"


def unexpected(doing: str) -> ForgeError:
    """The error for a document that is not what GitHub describes."""
    return ForgeError(f"cannot {doing}: the answer is not what GitHub's API gives. Is the address (--api-url) right?")


def _comment(document: object, doing: str) -> Comment:
    match document:
        case {"id": int(number), "html_url": str(url), **rest}:
            body, user = rest.get("body"), rest.get("user")
            login = user.get("login") if isinstance(user, dict) else None
            return Comment(
                id=number,
                author=login if isinstance(login, str) else None,
                body=body if isinstance(body, str) else "",
                url=url,
            )
    raise unexpected(doing)


def newest_commit(api: GitHubApi, *, repository: str, number: int) -> str:
    """The commit at the head of a pull request. Raises ``ForgeError``."""
    doing = f"read pull request {number} of {repository}"
    match api.get(f"/repos/{repository}/pulls/{number}", doing=doing):
        case {"head": {"sha": str(commit)}}:
            return commit
    raise unexpected(doing)


def pull_request_of(api: GitHubApi, event: WorkflowEvent, *, repository: str) -> int | None:
    """The pull request that a run is about, when its event does not name it; ``None`` for a commit that has none.

    Raises ``ForgeError``, and ``UsageError`` when there is nothing to go by or more than one.
    """
    if event.pull_request is not None:
        return event.pull_request
    if event.commit is None:
        raise UsageError(f"which pull request? The event of this run does not name one. {_GIVE}")
    if event.head is not None and not event.pushed:
        path = f"/repos/{repository}/pulls?state=open&per_page=100&head={urllib.parse.quote(event.head, safe='')}"
        matches = [number for number, newest, _ in _list_pull_requests(api, path, repository) if newest == event.commit]
    else:
        listed = _list_pull_requests(api, f"/repos/{repository}/commits/{event.commit}/pulls?per_page=100", repository)
        merged = [(number, by) for number, _, by in listed if by is not None]
        matches = [number for number, by in merged if by == event.commit] or [number for number, _ in merged]
    if len(matches) > 1:
        numbers = ", ".join(str(candidate) for candidate in matches)
        raise UsageError(f"commit {event.commit} belongs to more than one pull request ({numbers}). {_GIVE}")
    return matches[0] if matches else None


def _list_pull_requests(api: GitHubApi, path: str, repository: str) -> list[tuple[int, str, str | None]]:
    """Number, newest commit, and, when merged, the commit that did it."""
    doing = f"look for the pull request in {repository}"
    pull_requests = []
    for page in api.pages(path, doing=doing):
        match page:
            case {
                "number": int(number),
                "head": {"sha": str(newest)},
                "merged_at": merged,
                "merge_commit_sha": str() | None as by,
            }:
                pull_requests.append((number, newest, (by or "") if merged else None))
            case _:
                raise unexpected(doing)
    return pull_requests


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEvent:
    """Why this run was started. Everything is ``None`` outside a workflow."""

    pull_request: int | None = None
    commit: str | None = None
    """The newest commit of the pull request when the run was started, or the commit that was pushed."""
    head: str | None = None
    """``OWNER:BRANCH`` that a ``workflow_run`` was about; the event does not name the pull request of a fork."""
    pushed: bool = False
    """The commit is on a branch, so its pull request, if any, is merged."""


def read_event(environment: Mapping[str, str]) -> WorkflowEvent:
    """The event of this run. Raises ``FileAccessError`` for a file that cannot be read or is not an event."""
    name = environment.get("GITHUB_EVENT_PATH")
    if not name:
        return WorkflowEvent()
    try:
        document = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileAccessError(f"cannot read {name}, the event of this run: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FileAccessError(f"{name} is not the event of a workflow run: {error}") from error
    return event_from_json(document)


def event_from_json(document: object) -> WorkflowEvent:
    """The event in a document, as GitHub's webhooks have it: ``pull_request``, ``issue_comment``, ``workflow_run``, ``push``."""
    match document:
        case {"pull_request": {"number": int(number), **pull}}:
            return WorkflowEvent(pull_request=number, commit=_commit(_inside(pull, "head", "sha")))
        case {"issue": {"number": int(number), "pull_request": {}}}:
            return WorkflowEvent(pull_request=number)
        case {"workflow_run": {**run}}:
            return _of_run(run)
        case {"ref": str(), "after": str(after)}:
            return WorkflowEvent(commit=_commit(after), pushed=True)
    return WorkflowEvent()


def run_link(environment: Mapping[str, str]) -> str | None:
    """The address of this run's log, from the variables that GitHub Actions sets; ``None`` without them."""
    server, repository, run = (environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and _NUMBER.fullmatch(run) else None


def _of_run(run: dict[object, object]) -> WorkflowEvent:
    commit = _commit(run.get("head_sha"))
    listed = run.get("pull_requests")
    match listed:
        case [{"number": int(number)}]:
            return WorkflowEvent(pull_request=number, commit=commit)
    owner, branch = _inside(run, "head_repository", "owner", "login"), run.get("head_branch")
    head = f"{owner}:{branch}" if isinstance(owner, str) and isinstance(branch, str) else None
    return WorkflowEvent(commit=commit, head=head, pushed=run.get("event") == "push")


def _inside(document: object, *keys: str) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _commit(value: object) -> str | None:
    return value if isinstance(value, str) and _COMMIT.fullmatch(value) else None
