"""Keep one comment on a pull request true: find the pull request, rewrite or post the comment, and fold duplicates."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import ForgeError
from reconciler.features.pull_requests.comment_verdict import NO_PLAN, NOT_CHANGED, Conclusion, status_name
from reconciler.features.pull_requests.forge import Comment, Forge, Job, Request
from reconciler.features.pull_requests.github import GitHub
from reconciler.features.pull_requests.gitlab import GitLab
from reconciler.features.pull_requests.review_comments import SuggestionResult, keep_suggestions
from reconciler.features.pull_requests.sticky_comment import (
    CommentState,
    CommentStatus,
    Content,
    content_for,
    is_edited,
    read_content,
    read_marker,
    render_sticky_comment,
)
from reconciler.ports import Clock
from reconciler.render import RepoPaths, RepositoryLinks

_ROUNDS: Final = 3
"""How often a comment that another account removes meanwhile is looked for again."""


class ForgeName(enum.StrEnum):
    """Where pull requests are."""

    GITHUB = "github"
    GITLAB = "gitlab"

    @property
    def forge(self) -> type[GitHub | GitLab]:
        """The class that talks to this forge."""
        return GitLab if self is ForgeName.GITLAB else GitHub


def job_forge(environment: Mapping[str, str]) -> ForgeName | None:
    """The forge whose job has these variables; ``None`` outside of every job."""
    if "GITHUB_ACTIONS" in environment:
        return ForgeName.GITHUB
    return ForgeName.GITLAB if "GITLAB_CI" in environment else None


def forge_here(environment: Mapping[str, str]) -> ForgeName:
    """The same, and GitHub outside of every job."""
    return job_forge(environment) or ForgeName.GITHUB


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentTarget:
    """Where the comment is. The rest, and what is ``None``, comes from the environment, as the forge sets it in a job."""

    environment: Mapping[str, str]
    forge: ForgeName = ForgeName.GITHUB
    pull_request: int | None = None
    token_file: Path | None = None
    author: str | None = None

    def job(self) -> Job:
        """Read what the environment names. Raises ``FileAccessError``."""
        job = self.forge.forge.job(self.environment)
        return dataclasses.replace(job, request=self.pull_request) if self.pull_request else job


class CommentResult(enum.StrEnum):
    """What became of the comment."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    LEFT = "left"
    """The comment needs no change, or a newer run has written it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentRequest:
    """The wanted comment. Without ``content`` it keeps the plan that it has."""

    content: Content | None
    status: CommentStatus
    cluster: str | None = None
    """Of the comment, where ``content`` does not name it."""
    label: str = ""
    newest: str | None = None
    """The newest commit of the pull request. A plan of another one is outdated."""
    only_existing: bool = False
    """Change a comment that is there, and make none."""

    @property
    def address(self) -> tuple[str | None, str]:
        """The cluster, if any, and the label that the comment is about."""
        return (self.content.marker.cluster if self.content else self.cluster), self.label

    def now(self) -> CommentStatus:
        """The status: a plan of a commit that is no longer the newest is outdated before it is posted."""
        status = self.status
        known = status.state in _PLANNED and status.commit is not None and self.newest is not None
        late = known and not str(self.newest).startswith(str(status.commit).lower())
        return dataclasses.replace(status, state=CommentState.OUTDATED) if late else status


_PLANNED: Final = (CommentState.PLANNED, CommentState.PLAN_FAILED, CommentState.NOT_CHANGED)
_STATE_CHECKS: Final = {CommentState.PLAN_FAILED: NO_PLAN, CommentState.NOT_CHANGED: NOT_CHANGED}
_WHOLE_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOutcome:
    """What was done. ``edited``: a person had changed the comment. ``strangers``: comments of others that have our marker."""

    result: CommentResult
    state: CommentState
    """Of the plan. Outdated in place of planned when the pull request has a newer commit."""
    cluster: str | None
    """``None`` for a comment about the whole repository."""
    label: str
    """Empty when there is one comment for the cluster."""
    author: str
    """The login whose comments are looked at."""
    reason: str = ""
    id: int | None = None
    """Of the comment. ``None`` when there is none."""
    url: str | None = None
    """Of the comment. ``None`` when there is none."""
    edited: bool = False
    """True when another writer had changed the comment. It was written again."""
    folded: tuple[int, ...] = ()
    """Ids of comments of the same kind that were removed."""
    strangers: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestOutcome:
    """What was done where; ``comment`` is ``None`` without a pull request, and ``reason`` states why."""

    forge: ForgeName
    """Where the comment is."""
    repository: str | None
    """OWNER/NAME, on GitLab the path of the project. ``None`` only in a dry run that does not name it."""
    pull_request: int | None
    """Its number. ``None`` when the commit belongs to none, or in a dry run that does not name it."""
    comment: CommentOutcome | None
    reason: str = ""
    status: Conclusion | None = None
    """The status that the commit got for this cluster. ``None`` when it got none."""
    suggestions: int = 0
    """How many suggestions stand on lines of the pull request."""
    problems: tuple[str, ...] = ()
    """Why the forge did not take a status or suggestions."""

    def warnings(self) -> Iterator[str]:
        """Yield what a user should know although nothing failed."""
        yield from self.problems
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

    ``commit``: of the files that are linked to, where it is not the one of the job. Raises ``FileAccessError``.
    """
    job = target.job()
    at = commit or job.commit
    files = f"{job.files}/{at}" if job.files and at else None
    return RepositoryLinks(files=files, report=report, docs=docs, places=places or RepoPaths())


def comment_text(target: CommentTarget, wanted: CommentRequest) -> str:
    """The whole comment as it would be posted anew, without asking the forge. Raises ``ForgeError`` and ``FileAccessError``."""
    return fitting_comment(wanted.content or content_for(*wanted.address), _in_job(target, wanted.status, target.job()))


def _in_job(target: CommentTarget, status: CommentStatus, job: Job) -> CommentStatus:
    return dataclasses.replace(status, commit=status.commit or job.commit, link=job.link, link_name=target.forge.forge.run)


def post_comment(target: CommentTarget, wanted: CommentRequest, *, clock: Clock, patience: float) -> PullRequestOutcome:
    """Find the pull request and keep its comment. ``patience``: seconds of waiting for limits and faults, in all.

    Raises ``UsageError`` when something is missing or contradicts, ``FileAccessError`` and ``ForgeError``.
    """
    job = target.job()
    forge = target.forge.forge.connect(target.environment, target.token_file, clock=clock, patience=patience)
    shown, status = job.path or forge.repository, _in_job(target, wanted.status, job)
    try:
        number = forge.find(job)
        if number is None:
            reason = f"commit {job.commit} belongs to no {forge.request}"
            return PullRequestOutcome(forge=target.forge, repository=shown, pull_request=None, comment=None, reason=reason)
        request, author = forge.read(number), target.author or forge.whoami()
        # A commit that was pushed to a branch is not one of the pull request.
        compared = wanted.status.commit is not None or not job.pushed
        suggested = _keep_suggestions(forge, request, dataclasses.replace(wanted, status=status), author=author)
        wanted = dataclasses.replace(
            wanted,
            status=dataclasses.replace(status, suggested=suggested.count),
            newest=request.commit if compared else None,
        )
        try:
            comment = keep_comment(forge, request, wanted, author=author)
        except ForgeError:
            # The status must not stay what an earlier run made it.
            _set_status(forge, request, wanted, address=job.link)
            raise
        conclusion, problem = _set_status(forge, request, wanted, address=comment.url or job.link)
    finally:
        forge.close()
    return PullRequestOutcome(
        forge=target.forge,
        repository=shown,
        pull_request=number,
        comment=comment,
        status=conclusion,
        suggestions=suggested.count,
        problems=tuple(text for text in (problem, suggested.problem) if text is not None),
    )


def _keep_suggestions(forge: Forge, request: Request, wanted: CommentRequest, *, author: str) -> SuggestionResult:
    """Post the suggestions for a plan of the newest commit. A fork gets none, because its users decide about its commits."""
    status = wanted.status
    newest = status.commit is not None and request.commit.startswith(status.commit.lower())
    if status.state not in _PLANNED or not newest or request.is_fork:
        return SuggestionResult()
    source = wanted.content.suggestions if wanted.content is not None and status.state is CommentState.PLANNED else None
    return keep_suggestions(forge, request, source, about=wanted.address, author=author)


def _set_status(
    forge: Forge, request: Request, wanted: CommentRequest, *, address: str | None
) -> tuple[Conclusion | None, str | None]:
    """The status that the planned commit got, and why it got none although it should have one."""
    cluster, label = wanted.address
    check = _STATE_CHECKS.get(wanted.status.state) or (wanted.content.check if wanted.content else None)
    # A plan of an older commit is about that commit, and says nothing about the newest.
    planned = (wanted.status.commit or "").lower()
    commit = planned if _WHOLE_COMMIT.fullmatch(planned) else request.commit
    known = planned != "" and commit.startswith(planned)
    if wanted.status.state not in _PLANNED or cluster is None or check is None or not known or request.is_fork:
        return None, None
    try:
        forge.set_status(commit, status_name(cluster, label), check, address)
    except ForgeError as error:
        return None, f"No status was set: {error}"
    return check.conclusion, None


def keep_comment(forge: Forge, request: Request, wanted: CommentRequest, *, author: str) -> CommentOutcome:
    """Make the comment by ``author`` state what is asked for, whatever happened to it. Raises ``ForgeError``."""
    cluster, label = wanted.address
    for _ in range(_ROUNDS):
        everything = [comment for comment in forge.comments(request) if _address(comment) == wanted.address]
        own = [comment for comment in everything if _same_login(comment.author, author)]
        outcome = CommentOutcome(
            result=CommentResult.LEFT,
            state=wanted.now().state,
            cluster=cluster,
            label=label,
            author=author,
            strangers=tuple(comment for comment in everything if comment not in own),
        )
        if own:
            kept = _rewrite(forge, request, wanted, own, outcome)
            if kept is not None:
                return kept
            continue
        if reason := _why_none(wanted):
            return dataclasses.replace(outcome, reason=reason)
        created = forge.create(request, fitting_comment(wanted.content or content_for(*wanted.address), wanted.now()))
        again = [each for each in forge.comments(request) if _address(each) == wanted.address and each.id != created.id]
        # What was posted is not the only one, or not by whom we thought: found anew, and folded, in the next round.
        author = created.author or author
        if not any(_same_login(comment.author, created.author) for comment in again):
            return dataclasses.replace(
                outcome,
                result=CommentResult.CREATED,
                author=author,
                id=created.id,
                url=created.url,
                strangers=tuple(again),
            )
    raise ForgeError("the comment is removed, or written anew, as often as it is written. Does another run do the same?")


def _why_none(wanted: CommentRequest) -> str:
    """Return the reason why no new comment is made, or an empty text."""
    state = wanted.now().state
    if state in (CommentState.OUTDATED, CommentState.NOT_CHANGED):
        return "the pull request has no comment to change"
    if wanted.content is not None and wanted.content.marker.empty and state is CommentState.PLANNED:
        return "nothing would change, and there is no comment yet"
    return "the pull request has no comment yet" if wanted.only_existing else ""


def _rewrite(
    forge: Forge, request: Request, wanted: CommentRequest, own: list[Comment], outcome: CommentOutcome
) -> CommentOutcome | None:
    """Rewrite the oldest and remove the rest; ``None`` when it is gone."""
    kept, *rest = own
    marker, status, text = read_marker(kept.body), wanted.now(), kept.body
    overtaken = status.state is not wanted.status.state and marker is not None and marker.commit != wanted.status.commit
    edited = is_edited(kept.body)
    if not overtaken:
        before = None if edited else read_content(kept.body)
        text = fitting_comment(wanted.content or before or content_for(*wanted.address), status, edited=edited)
    same = text.rstrip() == kept.body.replace("\r\n", "\n").rstrip()
    updated = kept if same else forge.update(request, kept.id, text)
    if updated is None:
        return None
    for comment in rest:
        forge.delete(request, comment.id)
    result = CommentResult.LEFT if overtaken else CommentResult.UNCHANGED if same else CommentResult.UPDATED
    return dataclasses.replace(
        outcome,
        result=result,
        reason="the comment is about a newer commit" if overtaken else "",
        id=kept.id,
        url=updated.url,
        edited=edited and not overtaken,
        folded=tuple(comment.id for comment in rest),
    )


def fitting_comment(content: Content, status: CommentStatus, *, edited: bool = False) -> str:
    """The text of the comment. Raises ``ForgeError`` for one that is too long."""
    try:
        return render_sticky_comment(content, status, edited=edited)
    except ValueError as error:
        raise ForgeError(f"the comment is too long: {error}") from error


def _address(comment: Comment) -> tuple[str | None, str] | None:
    marker = read_marker(comment.body)
    return None if marker is None else marker.address


def _same_login(login: str | None, other: str | None) -> bool:
    return login is not None and other is not None and login.casefold() == other.casefold()
