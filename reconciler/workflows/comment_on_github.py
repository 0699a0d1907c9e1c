"""From what a user or a workflow run says to the comment on GitHub: which server, token, repository and pull request."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import UsageError
from reconciler.integrations import (
    ACTIONS,
    PUBLIC,
    GitHubApi,
    PullRequestComments,
    api_address,
    newest_commit,
    pull_request_of,
    read_event,
    read_token,
    repository_name,
    run_link,
)
from reconciler.ports import Clock
from reconciler.render import CommentState, CommentStatus, Content
from reconciler.workflows.comment import CommentOutcome, CommentRequest, keep_comment


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubTarget:
    """Where the comment is; what is ``None`` comes from the environment, as GitHub sets it in a workflow."""

    environment: Mapping[str, str]
    repository: str | None = None
    pull_request: int | None = None
    api_url: str | None = None
    token_file: Path | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestOutcome:
    """What was done where; ``comment`` is ``None`` when there is no pull request, and ``reason`` says so."""

    repository: str
    pull_request: int | None
    comment: CommentOutcome | None
    reason: str = ""

    def warnings(self) -> Iterator[str]:
        """What a person should know of, although all went well."""
        if self.comment is None:
            return
        if self.comment.edited:
            yield "somebody had edited the comment; it was written anew"
        for one in self.comment.strangers:
            yield f"comment {one.id} of {one.author!r} has this tool's marker but is not by {self.comment.author!r}; left alone"


def post_comment(
    target: GitHubTarget,
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
    environment = target.environment
    address = api_address(target.api_url or environment.get("GITHUB_API_URL") or PUBLIC)
    given = target.repository or environment.get("GITHUB_REPOSITORY")
    if not given:
        raise UsageError("which repository? Give --repository OWNER/NAME, or set GITHUB_REPOSITORY")
    repository = repository_name(given)
    token = read_token(environment, target.token_file)
    event = read_event(environment)
    event = dataclasses.replace(event, pull_request=target.pull_request) if target.pull_request else event
    # A commit that was pushed to a branch is not one of the pull request: it says nothing about which plan is the newest.
    planned = status.state is CommentState.PLANNED and (status.commit or (None if event.pushed else event.commit)) is not None
    status = dataclasses.replace(status, commit=status.commit or event.commit, link=run_link(environment))
    api = GitHubApi(address, token, clock=clock, patience=patience)
    try:
        number = pull_request_of(api, event, repository=repository)
        if number is None:
            reason = f"commit {event.commit} belongs to no pull request"
            return PullRequestOutcome(repository=repository, pull_request=None, comment=None, reason=reason)
        comments = PullRequestComments(api, repository=repository, number=number)
        request = CommentRequest(
            content=content,
            status=status,
            cluster=content.marker.cluster if content else cluster,
            label=label,
            author=target.author or comments.whoami() or ACTIONS,
            newest=newest_commit(api, repository=repository, number=number) if planned else None,
            only_existing=only_existing,
        )
        comment = keep_comment(comments, request)
    finally:
        api.close()
    return PullRequestOutcome(repository=repository, pull_request=number, comment=comment)
