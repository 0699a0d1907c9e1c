"""The comments of one pull request: read, post, change, remove. Forms as in ``issue-comment`` of GitHub's OpenAPI description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.errors import ForgeError
from reconciler.integrations.github.api import GitHubApi

ACTIONS: Final = "github-actions[bot]"
"""Who comments with the token of a workflow. Such a token cannot ask who it is, and no person can have a name in brackets."""

_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment. ``author`` is a login, in the case that GitHub shows; ``None`` for an account that is deleted."""

    id: int
    author: str | None
    body: str
    url: str


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
        found = [_comment(one, doing) for one in self._api.pages(f"{self._list}?per_page=100", doing=doing)]
        # A comment can come twice when others are removed between two pages.
        return sorted({one.id: one for one in found}.values(), key=lambda one: one.id)

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
        """Remove a comment; one that is gone already is no error."""
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


def unexpected(doing: str) -> ForgeError:
    """The error for a document that is not what GitHub describes."""
    return ForgeError(f"cannot {doing}: the answer is not what GitHub's API gives; is the address (--api-url) right?")


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
