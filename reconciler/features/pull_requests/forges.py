"""Where a comment is posted: the forge, the pull request that a run is about, the token, and the addresses to link to."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.features.pull_requests.comment import CommentOutcome, CommentRequest, Comments, fitting_comment, keep_comment
from reconciler.features.pull_requests.github.api import GitHubApi, github_address, github_token
from reconciler.features.pull_requests.github.pull_requests import (
    ACTIONS,
    OpenPullRequests,
    PullRequestComments,
    newest_commit,
    pull_request_of,
    read_event,
    repository_name,
    run_link,
)
from reconciler.features.pull_requests.gitlab.api import GitLabApi, gitlab_address, gitlab_token
from reconciler.features.pull_requests.gitlab.merge_requests import (
    MergeRequestNotes,
    OpenMergeRequests,
    files_of,
    merge_request_of,
    project_name,
    read_job,
    read_merge_request,
)
from reconciler.features.pull_requests.overlaps import OpenRequests, OverlapSearch, find_overlaps
from reconciler.features.pull_requests.sticky_comment import CommentState, CommentStatus, Content, content_for
from reconciler.ports import Clock
from reconciler.render import RepoPaths, RepositoryLinks, files_at


class Forge(enum.StrEnum):
    """Where pull requests are."""

    GITHUB = "github"
    GITLAB = "gitlab"


REQUEST_NAMES: Final[Mapping[Forge, str]] = {Forge.GITHUB: "pull request", Forge.GITLAB: "merge request"}
"""What a proposed change is called there."""

_RUN_NAMES: Final[Mapping[Forge, str]] = {Forge.GITHUB: "Workflow run", Forge.GITLAB: "Pipeline job"}


def forge_here(environment: Mapping[str, str]) -> Forge:
    """The forge whose job has these variables; GitHub outside of every job."""
    gitlab = "GITLAB_CI" in environment and "GITHUB_ACTIONS" not in environment
    return Forge.GITLAB if gitlab else Forge.GITHUB


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentTarget:
    """Where the comment is. The rest, and what is ``None``, comes from the environment, as the forge sets it in a job."""

    environment: Mapping[str, str]
    forge: Forge = Forge.GITHUB
    pull_request: int | None = None
    token_file: Path | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestOutcome:
    """What was done where; ``comment`` is ``None`` without a pull request, and ``reason`` states why."""

    forge: Forge
    """Where the comment is. Documents before 1.1 have no such field and are about GitHub."""
    repository: str | None
    """OWNER/NAME, on GitLab the path of the project. ``None`` only in a dry run that does not name it."""
    pull_request: int | None
    """Its number. ``None`` when the commit belongs to none, or in a dry run that does not name it."""
    comment: CommentOutcome | None
    reason: str = ""
    overlaps: OverlapSearch = field(default_factory=OverlapSearch)
    """Other open requests that change the same entities."""

    def warnings(self) -> Iterator[str]:
        """What a person should know of, although all went well."""
        yield from self.overlaps.warnings
        if self.comment is None:
            return
        if self.comment.edited:
            yield "The comment had been edited by hand, and was written anew"
        for stranger in self.comment.strangers:
            yield (
                f"Comment {stranger.id} of {stranger.author!r} has this tool's marker but is not by {self.comment.author!r}. "
                "kafka-quotas leaves it alone"
            )


def comment_links(
    target: CommentTarget,
    *,
    commit: str | None = None,
    report: str | None = None,
    docs: str | None = None,
    places: RepoPaths | None = None,
) -> RepositoryLinks:
    """The addresses that the environment of a job gives; what it does not give is not linked.

    ``commit``: of the files that are linked to, where it is not the one of the event. Raises ``FileAccessError``.
    """
    return RepositoryLinks(files=_files(target, commit), report=report, docs=docs, places=places or RepoPaths())


def _files(target: CommentTarget, commit: str | None) -> str | None:
    environment = target.environment
    if target.forge is Forge.GITHUB:
        server, repository = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
        return files_at(server, repository, commit or read_event(environment).commit)
    job = read_job(environment)
    if commit in (None, job.commit):
        return job.files
    server = environment.get("CI_SERVER_URL")
    return files_of(f"{server}/{job.path}" if server and job.path else None, commit)


def comment_text(
    target: CommentTarget, content: Content | None, status: CommentStatus, *, cluster: str | None, label: str
) -> str:
    """The whole comment as it would be posted anew, without asking the forge. Raises ``ForgeError`` and ``FileAccessError``."""
    if target.forge is Forge.GITHUB:
        commit, link = read_event(target.environment).commit, run_link(target.environment)
    else:
        job = read_job(target.environment)
        commit, link = job.commit, job.link
    return fitting_comment(content or content_for(cluster, label), _in_job(target, status, commit=commit, link=link))


def _in_job(target: CommentTarget, status: CommentStatus, *, commit: str | None, link: str | None) -> CommentStatus:
    return dataclasses.replace(status, commit=status.commit or commit, link=link, link_name=_RUN_NAMES[target.forge])


def post_comment(
    target: CommentTarget,
    content: Content | None,
    status: CommentStatus,
    *,
    cluster: str | None,
    label: str,
    clock: Clock,
    patience: float,
    only_existing: bool = False,
) -> PullRequestOutcome:
    """Find the pull request and keep its comment. ``patience``: seconds of waiting for limits and faults, in all.

    Raises ``UsageError`` when something is missing or contradicts, ``FileAccessError`` and ``ForgeError``.
    """
    request = CommentRequest(
        content=content,
        status=status,
        cluster=content.marker.cluster if content else cluster,
        label=label,
        author=target.author or "",
        only_existing=only_existing,
    )
    post = _post_on_github if target.forge is Forge.GITHUB else _post_on_gitlab
    return post(target, request, clock, patience)


def _post_on_github(target: CommentTarget, request: CommentRequest, clock: Clock, patience: float) -> PullRequestOutcome:
    environment = target.environment
    address = github_address(environment.get("GITHUB_API_URL") or None)
    given = environment.get("GITHUB_REPOSITORY")
    if not given:
        raise UsageError("the repository is not known. Set GITHUB_REPOSITORY to OWNER/NAME")
    repository = repository_name(given)
    token = github_token(environment, target.token_file)
    event = read_event(environment)
    event = dataclasses.replace(event, pull_request=target.pull_request) if target.pull_request else event
    known = request.status.commit or (None if event.pushed else event.commit)
    status = _in_job(target, request.status, commit=event.commit, link=run_link(environment))
    api = GitHubApi(address, token, clock=clock, patience=patience)
    try:
        number = pull_request_of(api, event, repository=repository)
        if number is None:
            return _no_request(target, repository, event.commit)
        comments = PullRequestComments(api, repository=repository, number=number)
        author = target.author or comments.whoami() or ACTIONS
        newest = newest_commit(api, repository=repository, number=number) if _is_planned(status, known) else None
        others = OpenPullRequests(api, repository=repository, number=number)
        request = dataclasses.replace(request, status=status, author=author, newest=newest)
        comment, overlaps = _keep_with_overlaps(comments, others, request)
    finally:
        api.close()
    return PullRequestOutcome(forge=target.forge, repository=repository, pull_request=number, comment=comment, overlaps=overlaps)


def _post_on_gitlab(target: CommentTarget, request: CommentRequest, clock: Clock, patience: float) -> PullRequestOutcome:
    environment = target.environment
    address = gitlab_address(environment.get("CI_API_V4_URL") or None)
    job = read_job(environment)
    if not job.project:
        raise UsageError("the project is not known. Set CI_PROJECT_ID to its number or its path, GROUP/NAME")
    project = project_name(job.project)
    shown = job.path or project
    token = gitlab_token(environment, target.token_file)
    job = dataclasses.replace(job, merge_request=target.pull_request) if target.pull_request else job
    known = request.status.commit or (None if job.pushed else job.commit)
    status = _in_job(target, request.status, commit=job.commit, link=job.link)
    ca_file = Path(environment["CI_SERVER_TLS_CA_FILE"]) if environment.get("CI_SERVER_TLS_CA_FILE") else None
    api = GitLabApi(address, token, clock=clock, patience=patience, ca_file=ca_file)
    try:
        number = merge_request_of(api, job, project=project)
        if number is None:
            return _no_request(target, shown, job.commit)
        merge_request = read_merge_request(api, project=project, number=number)
        notes = MergeRequestNotes(api, merge_request, project=project)
        author = target.author or notes.whoami()
        newest = merge_request.commit if _is_planned(status, known) else None
        others = OpenMergeRequests(api, merge_request, project=project)
        request = dataclasses.replace(request, status=status, author=author, newest=newest)
        comment, overlaps = _keep_with_overlaps(notes, others, request)
    finally:
        api.close()
    return PullRequestOutcome(forge=target.forge, repository=shown, pull_request=number, comment=comment, overlaps=overlaps)


def _keep_with_overlaps(
    comments: Comments, others: OpenRequests, request: CommentRequest
) -> tuple[CommentOutcome, OverlapSearch]:
    """The comment, with a warning for each overlap. Only a plan is compared: what is being applied, or was, is decided."""
    content = request.content if request.status.state is CommentState.PLANNED else None
    overlaps = find_overlaps(others, content, author=request.author)
    status = dataclasses.replace(request.status, warnings=overlaps.warnings)
    return keep_comment(comments, dataclasses.replace(request, status=status)), overlaps


def _is_planned(status: CommentStatus, known: str | None) -> bool:
    """Whether to compare with the newest commit; one that was pushed to a branch is not one of the pull request."""
    return status.state in (CommentState.PLANNED, CommentState.PLAN_FAILED) and known is not None


def _no_request(target: CommentTarget, repository: str, commit: str | None) -> PullRequestOutcome:
    reason = f"commit {commit} belongs to no {REQUEST_NAMES[target.forge]}"
    return PullRequestOutcome(forge=target.forge, repository=repository, pull_request=None, comment=None, reason=reason)
