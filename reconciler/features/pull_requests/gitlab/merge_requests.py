"""Merge requests: which one a job or a commit belongs to, its notes, and what the variables of a job name.

Sources: GitLab's documentation "Notes API", "Merge requests API", "Commits API" and "Predefined CI/CD variables reference". A
job for a merge request from a fork runs in the fork, so the project of the merge request has variables of its own.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from reconciler.errors import ForgeError, UsageError
from reconciler.features.pull_requests.gitlab.api import GitLabApi
from reconciler.features.pull_requests.posted_comment import Comment
from reconciler.model import escaped

_PAGE: Final = 100
_GONE: Final = 404
_PROJECT: Final = re.compile(r"[0-9]{1,20}|[A-Za-z0-9_.][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.][A-Za-z0-9_.-]*)+")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}")


def project_name(text: str) -> str:
    """A project's path with its groups, or its number, unchanged. Raises ``UsageError`` for another form."""
    if not _PROJECT.fullmatch(text):
        raise UsageError(f"a project is GROUP/NAME or its number, not {escaped(text)!r}")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineJob:
    """What the variables of a job name. Everything is ``None`` outside of one."""

    project: str | None = None
    """The number of the project that the merge request is in, as requests name it."""
    path: str | None = None
    """The path of the same project, for people."""
    merge_request: int | None = None
    commit: str | None = None
    """The newest commit of the merge request when the pipeline was made, or the commit that was pushed."""
    pushed: bool = False
    """The commit is on a branch, so its merge request, if any, is merged."""
    link: str | None = None
    files: str | None = None
    """The address of the repository's files at the commit."""


def read_job(environment: Mapping[str, str]) -> PipelineJob:
    """The job that these variables are of."""

    def first(*names: str) -> str | None:
        return next((environment[name] for name in names if environment.get(name)), None)

    number = environment.get("CI_MERGE_REQUEST_IID", "")
    merge_request = int(number) if _NUMBER.fullmatch(number) else None
    # A pipeline for merged results runs on a commit of its own, and names that of the branch separately.
    commit = first("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA")
    address = first("CI_MERGE_REQUEST_SOURCE_PROJECT_URL", "CI_PROJECT_URL")
    return PipelineJob(
        project=first("CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID"),
        path=first("CI_MERGE_REQUEST_PROJECT_PATH", "CI_PROJECT_PATH"),
        merge_request=merge_request,
        commit=commit,
        pushed=merge_request is None and bool(environment.get("CI_COMMIT_BRANCH")),
        link=first("CI_JOB_URL", "CI_PIPELINE_URL"),
        files=files_of(address, commit),
    )


def files_of(address: str | None, commit: str | None) -> str | None:
    """The address of a project's files at a commit, as GitLab spells it; ``None`` when a part is not known."""
    return f"{address}/-/blob/{commit}" if address and commit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """One merge request. ``commit``: the newest of its branch."""

    number: int
    commit: str
    address: str
    target: str = ""
    """The branch that it is merged into."""


def read_merge_request(api: GitLabApi, *, project: str, number: int) -> MergeRequest:
    """The merge request of this number. Raises ``ForgeError``."""
    doing = f"read merge request {number} of {project}"
    match api.get(f"{_path(project)}/merge_requests/{number}", doing=doing):
        case {"iid": int(iid), "sha": str(commit), "web_url": str(address), **rest}:
            return MergeRequest(number=iid, commit=commit, address=address, target=str(rest.get("target_branch") or ""))
    raise _unexpected(doing)


def merge_request_of(api: GitLabApi, job: PipelineJob, *, project: str) -> int | None:
    """The merge request that a job is about, when its variables do not name it; ``None`` for a commit that has none.

    Raises ``ForgeError``, and ``UsageError`` when nothing names it or more than one has the commit.
    """
    if job.merge_request is not None:
        return job.merge_request
    give = "Give its number with --merge-request"
    if job.commit is None or not job.pushed:
        raise UsageError(f"which merge request? The variables of this job do not name one. {give}")
    doing = f"look for the merge request in {project}"
    commit = urllib.parse.quote(job.commit, safe="")
    merged: list[tuple[int, bool]] = []
    for document in api.pages(f"{_path(project)}/repository/commits/{commit}/merge_requests?per_page=100", doing=doing):
        match document:
            case {"iid": int(iid), "state": str(state), **rest}:
                by = {rest.get(field) for field in ("merge_commit_sha", "squash_commit_sha", "sha")}
                merged += [(iid, job.commit in by)] if state == "merged" else []
            case _:
                raise _unexpected(doing)
    matches = [iid for iid, exact in merged if exact] or [iid for iid, _ in merged]
    if len(matches) > 1:
        numbers = ", ".join(str(candidate) for candidate in matches)
        raise UsageError(f"commit {job.commit} belongs to more than one merge request ({numbers}). {give}")
    return matches[0] if matches else None


class MergeRequestNotes:
    """The notes below one merge request. Every method raises ``ForgeError``."""

    def __init__(self, api: GitLabApi, merge_request: MergeRequest, *, project: str) -> None:
        self._api = api
        self._address = merge_request.address
        self._where = f"of merge request {merge_request.number} of {project}"
        self._notes = f"{_path(project)}/merge_requests/{merge_request.number}/notes"

    def all(self) -> list[Comment]:
        """Every note that a person or a program wrote, oldest first."""
        doing = f"read the notes {self._where}"
        pages = self._api.pages(f"{self._notes}?sort=asc&order_by=created_at&per_page=100", doing=doing)
        notes = [self._comment(note, doing) for note in pages if not _by_gitlab(note)]
        # A note can come twice when others are removed between two pages.
        return sorted({note.id: note for note in notes}.values(), key=lambda note: note.id)

    def create(self, body: str) -> Comment:
        """A new note."""
        doing = f"add a note to the conversation {self._where}"
        return self._comment(self._api.send("POST", self._notes, {"body": body}, doing=doing), doing)

    def update(self, comment_id: int, body: str) -> Comment | None:
        """Another body for a note; ``None`` when the note is gone."""
        doing = f"change a note {self._where}"
        try:
            answer = self._api.send("PUT", f"{self._notes}/{comment_id}", {"body": body}, doing=doing)
        except ForgeError as error:
            if error.status == _GONE:
                return None
            raise
        return self._comment(answer, doing)

    def delete(self, comment_id: int) -> None:
        """Remove a note; one that is gone already is not an error."""
        doing = f"remove a note {self._where}"
        try:
            self._api.send("DELETE", f"{self._notes}/{comment_id}", None, doing=doing)
        except ForgeError as error:
            if error.status != _GONE:
                raise

    def whoami(self) -> str:
        """The user name that the token belongs to; that of an access token of a project is a bot's."""
        doing = "ask whose the token is"
        match self._api.get("/user", doing=doing):
            case {"username": str(name)}:
                return name
        raise _unexpected(doing)

    def _comment(self, document: object, doing: str) -> Comment:
        return _comment(document, self._address, doing)


class OpenMergeRequests:
    """The open merge requests with the same target branch. Every method raises ``ForgeError``."""

    def __init__(self, api: GitLabApi, merge_request: MergeRequest, *, project: str) -> None:
        """``merge_request``: the own one."""
        self._api = api
        self._own = merge_request
        self._project = project

    def others(self) -> Iterator[int]:
        """The numbers of the others, the last changed first."""
        doing = f"list the open merge requests of {self._project}"
        query = {"state": "opened", "order_by": "updated_at", "sort": "desc", "per_page": "100"}
        query |= {"target_branch": self._own.target} if self._own.target else {}
        for document in self._api.pages(f"{_path(self._project)}/merge_requests?{urllib.parse.urlencode(query)}", doing=doing):
            match document:
                case {"iid": int(number)}:
                    if number != self._own.number:
                        yield number
                case _:
                    raise _unexpected(doing)

    def first_comments(self, number: int) -> list[Comment]:
        """The first hundred notes of one, the oldest first."""
        doing = f"read the notes of merge request {number} of {self._project}"
        path = f"{_path(self._project)}/merge_requests/{number}/notes?sort=asc&order_by=created_at&per_page={_PAGE}"
        return [_comment(note, "", doing) for note in islice(self._api.pages(path, doing=doing), _PAGE)]

    def name(self, number: int) -> str:
        """``merge request !12``."""
        return f"merge request !{number}"


def _comment(document: object, address: str, doing: str) -> Comment:
    """``address``: of the merge request."""
    match document:
        case {"id": int(number), "body": body, **rest}:
            author = rest.get("author")
            name = author.get("username") if isinstance(author, dict) else None
            return Comment(
                id=number,
                author=name if isinstance(name, str) else None,
                body=body if isinstance(body, str) else "",
                url=f"{address}#note_{number}",
            )
    raise _unexpected(doing)


def _by_gitlab(note: object) -> bool:
    """``changed the description``, and the like."""
    return isinstance(note, dict) and note.get("system") is True


def _path(project: str) -> str:
    return f"/projects/{urllib.parse.quote(project, safe='')}"


def _unexpected(doing: str) -> ForgeError:
    """The error for a document that is not what GitLab describes."""
    return ForgeError(f"cannot {doing}: the answer is not what GitLab's API gives. Check the address (--api-url)")
