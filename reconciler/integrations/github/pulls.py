"""Which pull request a commit belongs to, and which commit is its newest."""

from __future__ import annotations

import urllib.parse
from typing import Final

from reconciler.errors import UsageError
from reconciler.integrations.github.api import GitHubApi
from reconciler.integrations.github.comments import unexpected
from reconciler.integrations.github.event import WorkflowEvent

_GIVE: Final = "give its number with --pull-request"


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
        raise UsageError(f"which pull request? The event of this run does not say; {_GIVE}")
    if event.head is not None and not event.pushed:
        path = f"/repos/{repository}/pulls?state=open&per_page=100&head={urllib.parse.quote(event.head, safe='')}"
        found = [one for one, newest, _ in _listed(api, path, repository) if newest == event.commit]
    else:
        listed = _listed(api, f"/repos/{repository}/commits/{event.commit}/pulls?per_page=100", repository)
        merged = [(one, by) for one, _, by in listed if by is not None]
        found = [one for one, by in merged if by == event.commit] or [one for one, _ in merged]
    if len(found) > 1:
        numbers = ", ".join(str(one) for one in found)
        raise UsageError(f"commit {event.commit} belongs to more than one pull request ({numbers}); {_GIVE}")
    return found[0] if found else None


def _listed(api: GitHubApi, path: str, repository: str) -> list[tuple[int, str, str | None]]:
    """Number, newest commit, and, when merged, the commit that did it."""
    doing = f"look for the pull request in {repository}"
    found = []
    for one in api.pages(path, doing=doing):
        match one:
            case {
                "number": int(number),
                "head": {"sha": str(newest)},
                "merged_at": merged,
                "merge_commit_sha": str() | None as by,
            }:
                found.append((number, newest, (by or "") if merged else None))
            case _:
                raise unexpected(doing)
    return found
