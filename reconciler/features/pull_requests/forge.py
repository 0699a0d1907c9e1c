"""A forge with pull requests: what a job knows of its own one, the comments on it, and the others that are open.

GitLab calls them merge requests and notes. A subclass has the addresses and fields of its forge.
"""

from __future__ import annotations

import abc
import datetime
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from reconciler.errors import ForgeError, UsageError
from reconciler.features.pull_requests.comment_verdict import StatusCheck
from reconciler.features.pull_requests.line_edits import FileDiff, LinePlace, read_diff
from reconciler.features.pull_requests.rest_api import RestApi
from reconciler.model import MergedRequest

_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment, of the whole or on a line. ``author``: a login as the forge shows it; ``None``: its account is deleted."""

    id: int
    author: str | None
    body: str
    url: str
    path: str | None = None
    line: int | None = None
    """Of the new file. ``None`` once the line is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the environment of a job names. Everything is ``None`` outside of one."""

    repository: str | None = None
    """As requests name it."""
    path: str | None = None
    """The repository for people, where that is another name."""
    request: int | None = None
    commit: str | None = None
    """The newest commit of the pull request when the job was started, or the commit that was pushed."""
    head: str | None = None
    """``OWNER:BRANCH`` that a ``workflow_run`` of GitHub was about; its event does not name the pull request of a fork."""
    pushed: bool = False
    """The commit is on a branch, so its pull request, if any, is merged."""
    link: str | None = None
    """The address of the job's log."""
    files: str | None = None
    """The address of the repository's files, without a commit."""

    def files_at(self, commit: str | None) -> str | None:
        """The address of the files at a commit. ``None``: not known."""
        return f"{self.files}/{commit}" if self.files and commit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An open pull request. ``commit``: its newest."""

    number: int
    commit: str
    address: str
    is_fork: bool = False
    """The newest commit is of another repository, whose users decide what it has."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The commits that a place in GitLab's diff names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRequest:
    """A pull request from a branch of the repository itself. ``commit``: the newest of the branch when it was open."""

    number: int
    is_open: bool
    commit: str | None
    title: str
    body: str


class Forge(RestApi):
    """A repository on a forge. Methods raise ``ForgeError``."""

    request: ClassVar[str] = "pull request"
    """What a proposed change is called there."""
    sign: ClassVar[str] = "#"
    option: ClassVar[str] = "--pull-request"
    run: ClassVar[str] = "Workflow run"
    """What the link to the log is called."""
    change: ClassVar[str] = "PATCH"
    """The method that changes a comment."""

    commit_variable: ClassVar[str]
    """The variable of a job with its commit. ``starter_variables``: with the account that started it, the best first."""
    starter_variables: ClassVar[tuple[str, ...]]
    login_variable: ClassVar[str]

    suggestion: ClassVar[str] = "suggestion"
    """What follows the ticks of a block that replaces the line of its comment."""
    reviews_path: ClassVar[str]
    """The path of the list of comments on lines, for a ``number``. ``review_path``: of one of them, for its ``id``, too."""
    review_path: ClassVar[str]
    diffs_path: ClassVar[str]
    """The path of the list of changed files, for a ``number``. ``diff_fields``: new path, old path and patch of one."""
    diff_fields: ClassVar[tuple[str, str, str]]
    comments_path: ClassVar[str]
    """The path of the list of comments, for a ``number``. ``comment_path``: of one of them, for its ``id``, too."""
    comment_path: ClassVar[str]
    number: ClassVar[str] = "number"
    """The field of a pull request with its number."""
    author: ClassVar[tuple[str, str]]
    """The fields of a comment that lead to its author's login."""
    repository: str

    requests_path: ClassVar[str]
    """The path of the list of pull requests. ``branch_fields``: for a new one, the names of branch, target and text."""
    branch_fields: ClassVar[tuple[str, str, str]]
    closing: ClassVar[tuple[str, str]]
    """The field and value that close a pull request."""
    newest: ClassVar[tuple[str, ...]]
    """The fields of a pull request that lead to the newest commit of its branch."""

    @property
    @abc.abstractmethod
    def path(self) -> str:
        """The path of the repository."""

    @classmethod
    @abc.abstractmethod
    def job(cls, environment: Mapping[str, str]) -> Job:
        """The job that has these variables. Raises ``FileAccessError``."""

    def whoami(self) -> str:
        """The login that the token belongs to."""
        doing = "ask whose the token is"
        login = text_of(self.get("/user", doing=doing), self.author[1])
        if login is None:
            raise self.unexpected(doing)
        return login

    @abc.abstractmethod
    def read(self, number: int) -> Request:
        """One pull request."""

    @abc.abstractmethod
    def merged(self, number: int) -> MergedRequest:
        """Read who opened, approved and merged a pull request."""

    @abc.abstractmethod
    def candidates(self, job: Job, doing: str) -> Iterator[tuple[int, bool]]:
        """Pull requests of the job's commit, and whether the commit is exactly what was merged, or the newest.

        Raises ``UsageError`` when the job has nothing to go by.
        """

    @abc.abstractmethod
    def set_status(self, commit: str, name: str, check: StatusCheck, address: str | None) -> None:
        """Give a commit a status in place of an earlier one of this name. ``address``: a page with the reasons."""

    def diffs(self, request: Request) -> Mapping[str, FileDiff]:
        """The changed files of a pull request, by the paths that they have in it. Those of large files are empty."""
        doing = f"list the files of {self.request} {request.number} of {self.repository}"
        new, old, patch = self.diff_fields
        diffs = {}
        for document in self.pages(f"{self.path}{self.diffs_path.format(number=request.number)}?per_page=100", doing=doing):
            path = text_of(document, new)
            if path is None:
                raise self.unexpected(doing)
            diffs[path] = read_diff(text_of(document, old) or path, text_of(document, patch) or "")
        return diffs

    def review_comments(self, request: Request) -> list[Comment]:
        """The comments on lines, with those whose lines are gone."""
        doing = f"read the suggestions on {self.request} {request.number} of {self.repository}"
        comments = []
        for thread in self.pages(f"{self.path}{self.reviews_path.format(number=request.number)}?per_page=100", doing=doing):
            if (placed := self.first_comment(thread)) is not None:
                comment, path, line = placed
                at = line if isinstance(line, int) else None
                comments.append(replace(self._comment(comment, request, doing), path=path, line=at))
        return comments

    @abc.abstractmethod
    def first_comment(self, thread: object) -> tuple[object, str, object] | None:
        """The first comment of a thread, with the path and the line that it is on. ``None`` for a thread about the whole."""

    def comment_line(self, request: Request, place: LinePlace, body: str) -> None:
        """A new comment on a line that the pull request shows."""
        doing = f"suggest a change of line {place.line} of {place.path} in {self.repository}"
        document = {"body": body, **self.position(request, place)}
        self.send("POST", self.path + self.reviews_path.format(number=request.number), document, doing=doing)

    @abc.abstractmethod
    def position(self, request: Request, place: LinePlace) -> dict[str, object]:
        """The fields that place a comment on a line of the newest commit."""

    @abc.abstractmethod
    def from_branch(self, branch: str) -> str:
        """The query for the pull requests from a branch, in any state."""

    def requests_from(self, branch: str) -> list[BranchRequest]:
        """The pull requests from a branch, the newest first."""
        doing = f"list the {self.request}s from {branch} in {self.repository}"
        listed = []
        for document in self.pages(f"{self.path}{self.requests_path}?{self.from_branch(branch)}&per_page=100", doing=doing):
            number = document.get(self.number) if isinstance(document, dict) else None
            if not isinstance(document, dict) or not isinstance(number, int):
                raise self.unexpected(doing)
            # GitLab lists those of forks, too.
            if document.get("source_project_id") == document.get("target_project_id"):
                listed.append(
                    BranchRequest(
                        number=number,
                        is_open=document.get("state") in ("open", "opened"),
                        commit=text_of(document, *self.newest),
                        title=text_of(document, "title") or "",
                        body=(text_of(document, self.branch_fields[2]) or "").replace("\r\n", "\n"),
                    )
                )
        return listed

    def default_branch(self) -> str:
        """The branch that pull requests are merged into by default."""
        doing = f"read the default branch of {self.repository}"
        name = text_of(self.get(self.path, doing=doing), "default_branch")
        if name is None:
            raise self.unexpected(doing)
        return name

    def open_request(self, branch: str, target: str, title: str, body: str) -> int:
        """A new pull request; its number."""
        doing = f"open a {self.request} from {branch} in {self.repository}"
        document = dict(zip(self.branch_fields, (branch, target, body), strict=True)) | {"title": title}
        answer = self.send("POST", self.path + self.requests_path, document, doing=doing)
        number = answer.get(self.number) if isinstance(answer, dict) else None
        if not isinstance(number, int):
            raise self.unexpected(doing)
        return number

    def change_request(self, number: int, title: str, body: str) -> None:
        """Another title and text."""
        document = {"title": title, self.branch_fields[2]: body}
        self._send_to(number, document, doing=f"change {self.request} {number} of {self.repository}")

    def close_request(self, number: int) -> None:
        """Close it without merging."""
        self._send_to(number, dict([self.closing]), doing=f"close {self.request} {number} of {self.repository}")

    def _send_to(self, number: int, document: Mapping[str, str], *, doing: str) -> None:
        self.send(self.change, f"{self.path}{self.requests_path}/{number}", document, doing=doing)

    def name(self, number: int) -> str:
        """``pull request #12``."""
        return f"{self.request} {self.sign}{number}"

    def find(self, job: Job) -> int | None:
        """The pull request that a job is about; ``None`` for a commit that has none.

        Raises ``ForgeError``, and ``UsageError`` when there is nothing to go by or more than one.
        """
        if job.request is not None:
            return job.request
        listed = list(self.candidates(job, f"look for the {self.request} in {self.repository}"))
        matches = [number for number, exact in listed if exact] or [number for number, _ in listed]
        if len(matches) > 1:
            numbers = ", ".join(map(str, matches))
            raise UsageError(
                f"commit {job.commit} belongs to more than one {self.request} ({numbers}). Give its number with {self.option}"
            )
        return matches[0] if matches else None

    def comments(self, request: Request) -> list[Comment]:
        """The comments that users and programs wrote, oldest first."""
        doing = f"read the comments of {self.request} {request.number} of {self.repository}"
        pages = self.pages(f"{self.path}{self.comments_path.format(number=request.number)}per_page=100", doing=doing)
        own = (page for page in pages if not (isinstance(page, dict) and page.get("system") is True))
        # A comment can come twice when others are removed between two pages.
        comments = {comment.id: comment for comment in (self._comment(page, request, doing) for page in own)}
        return sorted(comments.values(), key=lambda comment: comment.id)

    def create(self, request: Request, body: str) -> Comment:
        """A new comment."""
        doing = f"add a comment to {self.request} {request.number} of {self.repository}"
        path = (self.path + self.comments_path.format(number=request.number)).partition("?")[0]
        return self._comment(self.send("POST", path, {"body": body}, doing=doing), request, doing)

    def change_comment(self, request: Request, comment: Comment, body: str | None) -> bool:
        """Give a comment another body, or remove it (``None``). False when it is gone."""
        doing = f"{'change' if body else 'remove'} a comment of {self.request} {request.number} of {self.repository}"
        path = self.comment_path if comment.path is None else self.review_path
        method, document = ("DELETE", None) if body is None else (self.change, {"body": body})
        try:
            self.send(method, self.path + path.format(number=request.number, id=comment.id), document, doing=doing)
        except ForgeError as error:
            if error.status in _GONE:
                return False
            raise
        return True

    def _comment(self, document: object, request: Request, doing: str) -> Comment:
        match document:
            case {"id": int(number), "body": body}:
                url = text_of(document, "html_url") or f"{request.address}#note_{number}"
                text = body if isinstance(body, str) else ""
                return Comment(id=number, author=text_of(document, *self.author), body=text, url=url)
        raise self.unexpected(doing)


def moment_of(document: object, *keys: str) -> datetime.datetime | None:
    """The moment below these keys, in UTC; ``None`` without one."""
    text = text_of(document, *keys)
    try:
        return None if text is None else datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except ValueError:
        return None


def text_of(document: object, *keys: str) -> str | None:
    """The text below these keys; ``None`` without one."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, str) else None


def quoted(text: str) -> str:
    """Any text as one part of a path."""
    return urllib.parse.quote(text, safe="")
