"""Keep one comment on a pull request: find, rewrite or post it, and fold duplicates."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
from dataclasses import dataclass
from typing import Final, Protocol

from reconciler.documents import FINDINGS, ApplySummary, read_plan
from reconciler.errors import FileAccessError, ForgeError
from reconciler.features.pull_requests.comment_entities import entities_line
from reconciler.features.pull_requests.plan_comment import BUDGET, findings_comment, plan_comment
from reconciler.features.pull_requests.posted_comment import Comment
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
from reconciler.model import ApplyResult, BacktestReport, Finding, Plan
from reconciler.render import RepositoryLinks, size

_ROUNDS: Final = 3
"""How often a comment that another account removes meanwhile is looked for again."""


class Comments(Protocol):
    """The comments of one pull request or merge request. Every method raises ``ForgeError``."""

    def all(self) -> list[Comment]:
        """Oldest first."""
        ...

    def create(self, body: str) -> Comment:
        """A new one."""
        ...

    def update(self, comment_id: int, body: str) -> Comment | None:
        """Another body; ``None`` when it is gone."""
        ...

    def delete(self, comment_id: int) -> None:
        """Removed, by any account."""
        ...


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
    cluster: str | None
    label: str
    author: str
    """Only comments of this login are ours."""
    newest: str | None = None
    """The newest commit of the pull request. A plan of another one is outdated."""
    only_existing: bool = False
    """Change a comment that is there, and make none."""


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
class CommentBody:
    """What BODY is: a plan, or findings. ``name`` is the file's."""

    name: str
    plan: Plan | None = None
    findings: tuple[Finding, ...] = ()


def read_body(text: str, *, name: str) -> CommentBody:
    """A plan or findings as JSON. Raises ``FileAccessError`` for any other text."""
    if _is_plan(text):
        return CommentBody(name=name, plan=read_plan(text, name=name))
    return CommentBody(name=name, findings=FINDINGS.read(text, name=name).findings)


def _is_plan(text: str) -> bool:
    """Whether a text is not a list of findings; text that is not JSON is left to the reader of plans."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(document, dict) or "findings" not in document or "changes" in document


def body_content(
    body: CommentBody,
    *,
    cluster: str | None,
    label: str,
    report: BacktestReport | None = None,
    report_name: str = "the backtest",
    links: RepositoryLinks | None = None,
    today: datetime.date | None = None,
) -> Content:
    """The content of the comment about this cluster and label: the plan with the backtest merged into it.

    ``cluster`` is needed for a body that is about no cluster (findings of manifests that cannot be planned), else it must be
    the body's own. Raises ``FileAccessError`` for a body or a report about another cluster, and for a report without a plan.
    """
    if body.plan is None:
        if report is not None:
            raise FileAccessError(f"{body.name} has findings and no plan, so {report_name} cannot be merged into it")
        content = findings_comment(body.findings, links=links)
    else:
        content = _with_entities(plan_comment(body.plan, report=report, links=links, today=today), body.plan)
    about = content.marker.cluster
    if cluster is not None and about not in (None, cluster):
        raise FileAccessError(f"{body.name} is about cluster {about!r}, not {cluster!r}")
    if report is not None and report.cluster is not None and about is not None and report.cluster != about:
        raise FileAccessError(f"{report_name} is about cluster {report.cluster!r}, not {about!r}")
    return dataclasses.replace(content, marker=dataclasses.replace(content.marker, cluster=about or cluster, label=label))


def _with_entities(content: Content, plan: Plan) -> Content:
    """With the changed entities hidden in it, where there is room."""
    line = entities_line(plan)
    if line is None or size((*content.lines, line)) > BUDGET:
        return content
    return dataclasses.replace(content, lines=(*content.lines, "", line))


def state_of_report(report: ApplySummary) -> CommentState:
    """How far the change is after a run of ``apply``."""
    if report.result is ApplyResult.DONE:
        return CommentState.APPLIED_IN_PART if report.withheld else CommentState.APPLIED
    idle = report.result is ApplyResult.NOTHING_TO_DO and not report.withheld
    return CommentState.APPLIED if idle else CommentState.FAILED


def keep_comment(comments: Comments, request: CommentRequest) -> CommentOutcome:
    """Make the comment state what is asked for, whatever happened to it. Raises ``ForgeError``."""
    author = request.author
    for _ in range(_ROUNDS):
        everything = [comment for comment in comments.all() if _address(comment) == (request.cluster, request.label)]
        own = [comment for comment in everything if _same_login(comment.author, author)]
        outcome = CommentOutcome(
            result=CommentResult.LEFT,
            state=request.status.state,
            cluster=request.cluster,
            label=request.label,
            author=author,
            strangers=tuple(comment for comment in everything if comment not in own),
        )
        if not own:
            done = _without_one(comments, request, outcome)
            if isinstance(done, CommentOutcome):
                return done
            # What was posted is not the only one, or not by whom we thought: found anew, and folded, in the next round.
            author = done.author or author
            continue
        kept = _with_one(comments, request, own, outcome)
        if kept is not None:
            return kept
    raise ForgeError("the comment is removed, or written anew, as often as it is written. Does another run do the same?")


def _without_one(comments: Comments, request: CommentRequest, outcome: CommentOutcome) -> CommentOutcome | Comment:
    status = _status_now(request)
    if status.state is CommentState.OUTDATED:
        return dataclasses.replace(outcome, state=status.state, reason="no comment could be outdated")
    if request.content is not None and request.content.marker.empty and status.state is CommentState.PLANNED:
        return dataclasses.replace(outcome, reason="nothing would change, and there is no comment yet")
    if request.only_existing:
        return dataclasses.replace(outcome, reason="the pull request has no comment yet")
    content = request.content or content_for(request.cluster, request.label)
    created = comments.create(fitting_comment(content, status))
    again = [comment for comment in comments.all() if _address(comment) == (request.cluster, request.label)]
    others = [comment for comment in again if _same_login(comment.author, created.author) and comment.id != created.id]
    if others:
        return created
    strangers = tuple(comment for comment in again if comment.id != created.id)
    return dataclasses.replace(
        outcome,
        result=CommentResult.CREATED,
        author=created.author or outcome.author,
        id=created.id,
        url=created.url,
        strangers=strangers,
    )


def _with_one(comments: Comments, request: CommentRequest, own: list[Comment], outcome: CommentOutcome) -> CommentOutcome | None:
    """Rewrite the oldest and remove the rest; ``None`` when it is gone."""
    kept, *rest = own
    marker, status = read_marker(kept.body), _status_now(request)
    overtaken = status.state is not request.status.state and marker is not None and marker.commit != request.status.commit
    text = kept.body
    edited = is_edited(kept.body)
    if not overtaken:
        held = content_for(request.cluster, request.label) if edited else read_content(kept.body)
        content = request.content or held or content_for(request.cluster, request.label)
        text = fitting_comment(content, status, edited=edited)
    same = text.rstrip() == kept.body.replace("\r\n", "\n").rstrip()
    updated = kept if same else comments.update(kept.id, text)
    if updated is None:
        return None
    for comment in rest:
        comments.delete(comment.id)
    outcome = dataclasses.replace(
        outcome, state=status.state, id=kept.id, url=updated.url, folded=tuple(comment.id for comment in rest), edited=edited
    )
    if overtaken:
        return dataclasses.replace(outcome, edited=False, reason="the comment is about a newer commit")
    return dataclasses.replace(outcome, result=CommentResult.UNCHANGED if same else CommentResult.UPDATED)


def fitting_comment(content: Content, status: CommentStatus, *, edited: bool = False) -> str:
    """The text of the comment. Raises ``ForgeError`` for one that is too long."""
    try:
        return render_sticky_comment(content, status, edited=edited)
    except ValueError as error:
        raise ForgeError(f"the comment is too long: {error}") from error


def _status_now(request: CommentRequest) -> CommentStatus:
    """A plan of a commit that is no longer the newest is outdated before it is posted."""
    status = request.status
    known = status.commit is not None and request.newest is not None
    late = (
        status.state in (CommentState.PLANNED, CommentState.PLAN_FAILED)
        and known
        and not str(request.newest).startswith(str(status.commit).lower())
    )
    return dataclasses.replace(status, state=CommentState.OUTDATED) if late else status


def _address(comment: Comment) -> tuple[str | None, str] | None:
    marker = read_marker(comment.body)
    return None if marker is None else marker.address


def _same_login(login: str | None, other: str | None) -> bool:
    return login is not None and other is not None and login.casefold() == other.casefold()
