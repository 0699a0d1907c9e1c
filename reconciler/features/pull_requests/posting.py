"""What a job keeps on its forge, one comment with its suggestions and its status, and what it asks: who merged and approved."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.errors import ForgeError
from reconciler.features.pull_requests.comment_verdict import NO_PLAN, NOT_CHANGED, Conclusion, status_name
from reconciler.features.pull_requests.forge import Comment, Forge, Job, Request
from reconciler.features.pull_requests.github import GitHub
from reconciler.features.pull_requests.gitlab import GitLab
from reconciler.features.pull_requests.sticky_comment import (
    CommentState,
    CommentStatus,
    Content,
    Marker,
    read_content,
    read_marker,
    render_sticky_comment,
)
from reconciler.features.pull_requests.suggestions import Suggestion
from reconciler.model import JobFacts, RunContext
from reconciler.ports import SystemClock
from reconciler.render import fence

PATIENCE: Final = 120.0
"""Seconds of waiting for rate limits and faults, in all."""
_ROUNDS: Final = 3
"""How often a comment that another account removes meanwhile is looked for again."""


def job_forge(environment: Mapping[str, str]) -> type[GitHub | GitLab] | None:
    """The forge whose job has these variables; ``None`` outside of every job."""
    if "GITHUB_ACTIONS" in environment:
        return GitHub
    return GitLab if "GITLAB_CI" in environment else None


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
    """``None``: the comment is about the whole repository."""
    newest: str | None = None
    """The newest commit of the pull request. A plan of another one is outdated."""
    only_existing: bool = False
    """Change a comment that is there, and make none."""

    def now(self) -> CommentStatus:
        """The status: a plan of a commit that is no longer the newest is outdated before it is posted."""
        status = self.status
        known = status.state in _PLANNED and status.commit is not None and self.newest is not None
        late = known and not str(self.newest).startswith(str(status.commit).lower())
        return dataclasses.replace(status, state=CommentState.OUTDATED) if late else status

    def text(self, earlier: Content | None = None) -> str:
        """The whole comment. ``earlier``: the content of the posted one."""
        content = self.content or earlier or Content(marker=Marker(cluster=self.cluster))
        return render_sticky_comment(content, self.now())


_PLANNED: Final = (CommentState.PLANNED, CommentState.PLAN_FAILED, CommentState.NOT_CHANGED)
_STATE_CHECKS: Final = {CommentState.PLAN_FAILED: NO_PLAN, CommentState.NOT_CHANGED: NOT_CHANGED}
_WHOLE_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOutcome:
    """What was done. ``reason``: why the comment was left."""

    result: CommentResult
    state: CommentState
    """Of the plan. Outdated in place of planned when the pull request has a newer commit."""
    reason: str = ""
    id: int | None = None
    """Of the comment. ``None`` when there is none."""
    url: str | None = None
    place: str = ""
    """``pull request 7 of OWNER/NAME``. Empty without a pull request."""
    status: Conclusion | None = None
    """The status that the commit got for this cluster. ``None`` when it got none."""
    problems: tuple[str, ...] = ()
    """Why the forge did not take a status or suggestions."""


def post_comment(forge: Forge, job: Job, wanted: CommentRequest, *, author: str | None = None) -> CommentOutcome:
    """Find the pull request of a job and keep its comment. ``author``: the login of the token, if the forge does not state it.

    Raises ``UsageError`` when something is missing or contradicts, and ``ForgeError``.
    """
    number = forge.find(job)
    if number is None:
        reason = f"commit {job.commit} belongs to no {forge.request}"
        return CommentOutcome(result=CommentResult.LEFT, state=wanted.status.state, reason=reason)
    request, author = forge.read(number), author or forge.whoami()
    count, failed = _keep_suggestions(forge, request, wanted, author=author)
    # A commit that was pushed to a branch is not one of the pull request.
    is_pushed = job.pushed and wanted.status.commit == job.commit
    status = dataclasses.replace(wanted.status, suggested=count)
    wanted = dataclasses.replace(wanted, status=status, newest=None if is_pushed else request.commit)
    try:
        outcome = keep_comment(forge, request, wanted, author=author)
    except ForgeError:
        # The status must not stay what an earlier run made it.
        _set_status(forge, request, wanted, address=job.link)
        raise
    conclusion, problem = _set_status(forge, request, wanted, address=outcome.url or job.link)
    return dataclasses.replace(
        outcome,
        place=f"{forge.request} {number} of {job.path or forge.repository}",
        status=conclusion,
        problems=tuple(filter(None, (problem, failed))),
    )


def _set_status(
    forge: Forge, request: Request, wanted: CommentRequest, *, address: str | None
) -> tuple[Conclusion | None, str | None]:
    """The status that the planned commit got, and why it got none although it should have one."""
    check = _STATE_CHECKS.get(wanted.status.state) or (wanted.content.check if wanted.content else None)
    # A plan of an older commit is about that commit, and says nothing about the newest.
    planned = (wanted.status.commit or "").lower()
    commit = planned if _WHOLE_COMMIT.fullmatch(planned) else request.commit
    known = planned != "" and commit.startswith(planned)
    if wanted.status.state not in _PLANNED or wanted.cluster is None or check is None or not known or request.is_fork:
        return None, None
    try:
        forge.set_status(commit, status_name(wanted.cluster), check, address)
    except ForgeError as error:
        return None, f"No status was set: {error}"
    return check.conclusion, None


def keep_comment(forge: Forge, request: Request, wanted: CommentRequest, *, author: str) -> CommentOutcome:
    """Make the comment by ``author`` state what is asked for, whatever happened to it. Raises ``ForgeError``."""
    created: Comment | None = None
    for _ in range(_ROUNDS):
        own = [comment for comment in forge.comments(request) if _is_about(comment, wanted.cluster, author)]
        if created is not None and [comment.id for comment in own] == [created.id]:
            return CommentOutcome(result=CommentResult.CREATED, state=wanted.now().state, id=created.id, url=created.url)
        if own:
            if (kept := _rewrite(forge, request, wanted, own)) is not None:
                return kept
        elif reason := _why_none(wanted):
            return CommentOutcome(result=CommentResult.LEFT, state=wanted.now().state, reason=reason)
        else:
            # Another run may post at the same moment, and the author may be another account than the token names.
            created = forge.create(request, wanted.text())
            author = created.author or author
    raise ForgeError("the comment is removed, or written anew, as often as it is written. Does another run do the same?")


def _why_none(wanted: CommentRequest) -> str:
    """Return the reason why no new comment is made, or an empty text."""
    state = wanted.now().state
    if state in (CommentState.OUTDATED, CommentState.NOT_CHANGED):
        return "the pull request has no comment to change"
    if wanted.content is not None and wanted.content.empty and state is CommentState.PLANNED:
        return "nothing would change, and there is no comment yet"
    return "the pull request has no comment yet" if wanted.only_existing else ""


def _rewrite(forge: Forge, request: Request, wanted: CommentRequest, own: list[Comment]) -> CommentOutcome | None:
    """Rewrite the oldest and remove the rest; ``None`` when it is gone."""
    kept, *rest = own
    marker, status, text = read_marker(kept.body), wanted.now(), kept.body
    overtaken = status.state is not wanted.status.state and marker is not None and marker.commit != wanted.status.commit
    if not overtaken:
        text = wanted.text(read_content(kept.body))
    same = text.rstrip() == kept.body.replace("\r\n", "\n").rstrip()
    if not (same or overtaken or forge.change_comment(request, kept, text)):
        return None
    for comment in rest:
        forge.change_comment(request, comment, None)
    result = CommentResult.LEFT if overtaken else CommentResult.UNCHANGED if same else CommentResult.UPDATED
    reason = "the comment is about a newer commit" if overtaken else ""
    return CommentOutcome(result=result, state=status.state, reason=reason, id=kept.id, url=kept.url)


def _is_about(comment: Comment, cluster: str | None, author: str) -> bool:
    """Whether it is the tool's comment about this cluster: logins have no case, and any user can paste a marker."""
    marker = read_marker(comment.body)
    return marker is not None and marker.cluster == cluster and (comment.author or "").casefold() == author.casefold()


_START: Final = "<!-- kafka-quotas:suggestion "
_BAD_PLACE: Final = (400, 422)


def _keep_suggestions(forge: Forge, request: Request, wanted: CommentRequest, *, author: str) -> tuple[int, str | None]:
    """Post, change and remove the suggestions by ``author`` for a plan of the newest commit.

    A fork gets none, because its users decide about its commits. Returns how many stand on lines now, and why not all do: a forge
    that refuses is not an error, since the comment has the same values.
    """
    status, count = wanted.status, 0
    newest = status.commit is not None and request.commit.startswith(status.commit.lower())
    if status.state not in _PLANNED or not newest or request.is_fork:
        return 0, None
    source = wanted.content.suggestions if wanted.content is not None and status.state is CommentState.PLANNED else None
    try:
        suggestions = source.suggestions(forge.diffs(request)) if source is not None else []
        posted = [comment for comment in forge.review_comments(request) if (comment.author or "").casefold() == author.casefold()]
        own = f"{_START}{_digest(wanted.cluster)} "
        known = {comment.body.partition("\n")[0].strip(): comment for comment in posted if comment.body.startswith(own)}
        for suggestion in suggestions:
            marker = f"{own}{_digest(suggestion.subject)} -->"
            count += _keep(forge, request, suggestion, known.pop(marker, None), marker)
        for comment in known.values():
            forge.change_comment(request, comment, None)
    except ForgeError as error:
        return count, f"Suggestions were not all posted: {error}"
    return count, None


def _keep(forge: Forge, request: Request, suggestion: Suggestion, posted: Comment | None, marker: str) -> bool:
    """Whether the suggestion stands on its line now."""
    body, place = suggestion_body(suggestion, marker, forge.suggestion), suggestion.place
    if posted is not None:
        if (posted.path, posted.line) == (place.path, place.line):
            if posted.body.replace("\r\n", "\n").rstrip() != body.rstrip():
                forge.change_comment(request, posted, body)
            return True
        forge.change_comment(request, posted, None)
    try:
        forge.comment_line(request, place, body)
    except ForgeError as error:
        # A line that the forge does not show: it decides.
        if error.status in _BAD_PLACE:
            return False
        raise
    return True


def suggestion_body(suggestion: Suggestion, marker: str, language: str) -> str:
    """The comment: its marker, the reason, and the lines to commit."""
    lines = "\n".join(suggestion.lines)
    ticks = fence(lines)
    return f"{marker}\n{suggestion.words}\n\n{ticks}{language}\n{lines}\n{ticks}\n"


def _digest(part: str | None) -> str:
    """A part of a marker: a name in it could end the line."""
    return hashlib.sha256(json.dumps(part).encode()).hexdigest()[:16]


_CONTEXT_PATIENCE: Final = 20.0
"""Seconds of waiting for who merged a commit: the run goes on meanwhile."""


def run_context(environment: Mapping[str, str]) -> Iterator[RunContext]:
    """Yield what the variables of a job state, and then what its forge knows too, if the job has a token.

    Yields nothing outside of a job. Raises ``ForgeError``, ``FileAccessError`` and ``UsageError``.
    """
    forge = job_forge(environment)
    if forge is None:
        return
    job = forge.job(environment)
    commit = environment.get(forge.commit_variable) or None
    facts = JobFacts(
        source=f"variables of the {forge.title} job",
        run=job.link,
        commit=commit,
        started_by=next((environment[name] for name in forge.starter_variables if environment.get(name)), None),
    )
    yield RunContext(job=facts)
    if not environment.get(forge.login_variable):
        return
    with contextlib.closing(forge.connect(environment, clock=SystemClock(), patience=_CONTEXT_PATIENCE)) as api:
        numbers = [] if job.request is None else [job.request]
        if not numbers and commit is not None:
            # The one request that became exactly this commit.
            pushed = dataclasses.replace(job, commit=commit, head=None, pushed=True)
            doing = f"look for the {api.request} of commit {commit} in {api.repository}"
            numbers = [number for number, exact in api.candidates(pushed, doing) if exact]
        if len(numbers) == 1:
            yield RunContext(job=facts, pull_request=api.merged(numbers[0]))
