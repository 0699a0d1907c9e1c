"""GitLab's REST API (gitlab.com or a server of your own), and what the variables of a job name.

Sources: GitLab's documentation "Notes API", "Merge requests API", "Commits API", "Authentication" (``PRIVATE-TOKEN`` takes access
tokens of every kind) and "Predefined CI/CD variables reference". A job for a merge request from a fork runs in the fork, so the
project of the merge request has variables of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final, Self

from reconciler.errors import UsageError
from reconciler.features.pull_requests.comment_verdict import StatusCheck
from reconciler.features.pull_requests.forge import Forge, Job, Request, moment_of, quoted, text_of
from reconciler.features.pull_requests.line_edits import LinePlace
from reconciler.features.pull_requests.rest_api import read_token
from reconciler.http import api_address
from reconciler.model import MergedRequest, escaped
from reconciler.ports import Clock

_PUBLIC: Final = "https://gitlab.com/api/v4"
_PROJECT: Final = re.compile(r"[0-9]{1,20}|[A-Za-z0-9_.][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.][A-Za-z0-9_.-]*)+")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,18}")


class GitLab(Forge):
    """A project on GitLab, and its merge requests."""

    title: ClassVar = "GitLab"
    request: ClassVar = "merge request"
    sign: ClassVar = "!"
    number: ClassVar = "iid"
    option: ClassVar = "--merge-request"
    run: ClassVar = "Pipeline job"
    change: ClassVar = "PUT"
    pipeline: str
    """The id of the pipeline that a status belongs to. Empty outside of one."""
    comments_path: ClassVar = "/merge_requests/{number}/notes?sort=asc&order_by=created_at&"
    comment_path: ClassVar = "/merge_requests/{number}/notes/{id}"
    reviews_path: ClassVar = "/merge_requests/{number}/discussions"
    review_path: ClassVar = comment_path
    suggestion: ClassVar = "suggestion:-0+0"
    diffs_path: ClassVar = "/merge_requests/{number}/diffs"
    diff_fields: ClassVar = ("new_path", "old_path", "diff")
    author: ClassVar = ("author", "username")
    requests_path: ClassVar = "/merge_requests"
    branch_fields: ClassVar = ("source_branch", "target_branch", "description")
    closing: ClassVar = ("state_event", "close")
    newest: ClassVar = ("sha",)
    commit_variable: ClassVar = "CI_COMMIT_SHA"
    starter_variables: ClassVar = ("GITLAB_USER_LOGIN",)
    login_variable: ClassVar = "GITLAB_TOKEN"
    subject: ClassVar = "the project, merge request or note"
    needed: ClassVar = (
        "The token needs the scope api and the role Reporter, for statuses Developer. A CI job token may not write notes"
    )

    @classmethod
    def connect(cls, environment: Mapping[str, str], *, clock: Clock, patience: float) -> Self:
        """The project that the environment names. Raises ``UsageError`` and ``FileAccessError``."""
        address = api_address(environment.get("CI_API_V4_URL") or _PUBLIC, api="GitLab's API", example=_PUBLIC)
        project = cls.job(environment).repository
        if not project:
            raise UsageError("the project is not known. Set CI_PROJECT_ID to its number or its path, GROUP/NAME")
        if not _PROJECT.fullmatch(project):
            raise UsageError(f"a project is GROUP/NAME or its number, not {escaped(project)!r}")
        token, file = read_token(environment, cls.login_variable), environment.get("CI_SERVER_TLS_CA_FILE")
        made = cls(address, token, clock=clock, patience=patience, ca_file=Path(file) if file else None)
        made.repository = project
        made.pipeline = environment.get("CI_PIPELINE_ID", "")
        return made

    @classmethod
    def job(cls, environment: Mapping[str, str]) -> Job:
        """The job that these variables are of."""

        def first(*names: str) -> str | None:
            return next((environment[name] for name in names if environment.get(name)), None)

        number = environment.get("CI_MERGE_REQUEST_IID", "")
        request = int(number) if _NUMBER.fullmatch(number) else None
        address = first("CI_MERGE_REQUEST_SOURCE_PROJECT_URL", "CI_PROJECT_URL")
        return Job(
            repository=first("CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID"),
            path=first("CI_MERGE_REQUEST_PROJECT_PATH", "CI_PROJECT_PATH"),
            request=request,
            # A pipeline for merged results runs on a commit of its own, and names that of the branch separately.
            commit=first("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"),
            pushed=request is None and bool(environment.get("CI_COMMIT_BRANCH")),
            link=first("CI_JOB_URL", "CI_PIPELINE_URL"),
            files=f"{address}/-/blob" if address else None,
        )

    def headers(self, token: str) -> dict[str, str]:
        """JSON, and the token in the header that takes access tokens of every kind."""
        return {"accept": "application/json", "private-token": token}

    def read(self, number: int) -> Request:
        """One merge request."""
        doing = f"read merge request {number} of {self.repository}"
        document = self.get(f"{self.path}/merge_requests/{number}", doing=doing)
        match document:
            case {"iid": int(iid), "sha": str(commit), "web_url": str(address), **more}:
                is_fork = more.get("source_project_id") != more.get("target_project_id")
                refs = more.get("diff_refs")
                versions = {name: str(sha) for name, sha in refs.items()} if isinstance(refs, dict) else {}
                return Request(number=iid, commit=commit, address=address, is_fork=is_fork, versions=versions)
        raise self.unexpected(doing)

    def set_status(self, commit: str, name: str, check: StatusCheck, address: str | None) -> None:
        """An external job of the pipeline. GitLab knows neither *neutral* nor *action required*: it passes or fails."""
        document: dict[str, object] = {"name": name, "state": "success" if check.passes else "failed", "description": check.title}
        more = {"target_url": address} if address else {}
        more |= {"pipeline_id": self.pipeline} if self.pipeline else {}
        doing = f"set the status {name} of commit {commit} of {self.repository}"
        self.send("POST", f"{self.path}/statuses/{quoted(commit)}", document | more, doing=doing)

    def merged(self, number: int) -> MergedRequest:
        """Read the merge request and its approvals."""
        doing = f"read who approved merge request {number} of {self.repository}"
        path = f"{self.path}/merge_requests/{number}"
        document, approvals = self.get(path, doing=doing), self.get(f"{path}/approvals", doing=doing)
        listed = approvals.get("approved_by") if isinstance(approvals, dict) else None
        approvers = {text_of(each, "user", "username") for each in listed} if isinstance(listed, list) else set()
        return MergedRequest(
            source=f"GitLab's REST API, {path} and its approvals",
            number=number,
            url=text_of(document, "web_url"),
            author=text_of(document, *self.author),
            approvers=tuple(sorted(name for name in approvers if name)),
            merged_by=text_of(document, "merge_user", "username"),
            merged=moment_of(document, "merged_at"),
            merge_commit=text_of(document, "merge_commit_sha") or text_of(document, "squash_commit_sha"),
        )

    def first_comment(self, thread: object) -> tuple[object, str, object] | None:
        """The first note of a thread."""
        match thread:
            case {"notes": [{"position": {"new_path": str(path), **at}} as note, *_]}:
                return note, path, at.get("new_line")
        return None

    def position(self, request: Request, place: LinePlace) -> dict[str, object]:
        """A place of the newest version. Unchanged lines need both of their numbers."""
        position: dict[str, object] = {"position_type": "text", "new_path": place.path, "old_path": place.old_path}
        position |= {"new_line": place.line, **request.versions}
        return {"position": position | ({} if place.old_line is None else {"old_line": place.old_line})}

    def candidates(self, job: Job, doing: str) -> Iterator[tuple[int, bool]]:
        """Find merge requests by the commit that was pushed."""
        if job.commit is None or not job.pushed:
            raise UsageError(
                f"which merge request? The variables of this job do not name one. Give its number with {self.option}"
            )
        path = f"{self.path}/repository/commits/{quoted(job.commit)}/merge_requests?per_page=100"
        for document in self.pages(path, doing=doing):
            match document:
                case {"iid": int(iid), "state": str(state), **rest}:
                    if state == "merged":
                        yield iid, job.commit in {rest.get(key) for key in ("merge_commit_sha", "squash_commit_sha", "sha")}
                case _:
                    raise self.unexpected(doing)

    def from_branch(self, branch: str) -> str:
        """A branch of this name, of forks too."""
        return f"source_branch={quoted(branch)}"

    @property
    def path(self) -> str:
        """The path of the repository."""
        return f"/projects/{quoted(self.repository)}"
