"""GitLab's REST API: its headers, rate limits, errors and pages.

Sources: GitLab's documentation "REST API" (pagination by ``Link``, status codes), "Rate limits" (``Retry-After``,
``RateLimit-Reset``) and "Authentication" (``PRIVATE-TOKEN`` for personal, project and group access tokens). A CI job token
may not write notes.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

import reconciler
from reconciler.features.pull_requests.rest_api import MINUTE, Pause, RestApi, error_text, header_seconds, json_in, refusal_words
from reconciler.integrations import Answer, ApiAddress, NoAnswerError, Token, api_address, read_token

PUBLIC: Final = "https://gitlab.com/api/v4"
VARIABLE: Final = "GITLAB_TOKEN"

_NEEDED: Final = "the token needs the scope api and the role Reporter or higher. A CI job token may not write notes"
_ADVICE: Final = {
    401: "the server refuses the token. Check that it has not expired and is of this server",
    403: f"the token may not do this: {_NEEDED}",
    404: f"the project, merge request or note does not exist, or the token may not see it: {_NEEDED}",
    400: "GitLab does not take this",
    422: "GitLab does not take this",
}
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;\s*rel="next"')
_MOST_REASONS: Final = 3


def gitlab_token(environment: Mapping[str, str], file: Path | None) -> Token:
    """The token of a file, else of the environment. Raises ``UsageError`` and ``FileAccessError``."""
    return read_token(environment, file, variable=VARIABLE)


def gitlab_address(text: str | None) -> ApiAddress:
    """The address of the API, by default that of gitlab.com. Raises ``UsageError``."""
    return api_address(PUBLIC if text is None else text, api="GitLab's API", example=PUBLIC)


class GitLabApi(RestApi):
    """One server, one token. ``patience``: seconds of waiting, in all, before a limit or fault becomes an error."""

    forge: ClassVar = "GitLab"
    request_id: ClassVar = "x-request-id"
    remaining: ClassVar = "ratelimit-remaining"

    def headers(self) -> dict[str, str]:
        """JSON, and the token in the header that takes access tokens of every kind."""
        return {
            "user-agent": f"kafka-quotas/{reconciler.__version__}",
            "accept": "application/json",
            "private-token": self.token.reveal(),
        }

    def pause_asked_for(self, answer: Answer, *, now: datetime.datetime, times: int) -> Pause | None:
        """Of status 429: as long as the server asks for, else a minute, growing."""
        if answer.status != 429:
            return None
        after = header_seconds(answer.headers.get("retry-after"))
        reset = header_seconds(answer.headers.get("ratelimit-reset"))
        if after is None and reset is not None:
            # A second more, since the moment is given in whole seconds and clocks differ.
            after = max(0.0, reset - now.timestamp()) + 1.0
        return Pause(seconds=MINUTE * 2**times if after is None else after, why="the rate limit", limited=True)

    def refusal(self, answer: Answer) -> str:
        """With GitLab's own reasons, of which there are several forms."""
        advice = _ADVICE.get(answer.status, "GitLab's API does not answer as expected")
        return refusal_words(answer, advice, _error_texts(json_in(answer)))

    def decipher(self, answer: Answer) -> tuple[object, str | None]:
        """The document, and the address in ``Link`` that is the next page."""
        document = json_in(answer)
        may_be_empty = answer.status in (202, 204) and answer.body.strip() in (b"", b"null")
        if document is None and not may_be_empty:
            raise NoAnswerError("the answer is cut short or is not JSON")
        following = _NEXT.search(answer.headers.get("link", ""))
        return document, following[1] if following else None


def _error_texts(document: object) -> Iterator[str]:
    """``message`` is a text, a list, or lists by field; ``error`` and ``error_description`` come from the check of the token."""
    if not isinstance(document, dict):
        return
    for key in ("message", "error", "error_description"):
        value = document.get(key)
        if isinstance(value, dict):
            for name, reasons in list(value.items())[:_MOST_REASONS]:
                listed = reasons if isinstance(reasons, list) else [reasons]
                yield from (f"{name} {text}" for reason in listed[:_MOST_REASONS] for text in error_text(reason))
        else:
            listed = value if isinstance(value, list) else [value]
            yield from (text for reason in listed[:_MOST_REASONS] for text in error_text(reason))
