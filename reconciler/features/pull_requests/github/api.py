"""GitHub's REST API: its headers, rate limits, errors and pages.

gidgethub knows what headers and answers mean (https://docs.github.com/rest); this decides what to do about them. Sources:
GitHub's documentation of its REST API, "Rate limits" and "Best practices": ``retry-after`` first, then the moment in
``x-ratelimit-reset`` once nothing remains, else at least a minute, growing; and that 5xx may pass. The forms of errors are
those of ``basic-error`` and ``validation-error`` in GitHub's OpenAPI description.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import reconciler
from reconciler.errors import MissingPackageError
from reconciler.features.pull_requests.rest_api import MINUTE, Pause, RestApi, error_text, header_seconds, json_in, refusal_words
from reconciler.integrations import Answer, ApiAddress, NoAnswerError, Token, api_address, read_token
from reconciler.ports import Clock

if TYPE_CHECKING:
    from types import ModuleType

PUBLIC: Final = "https://api.github.com"
VARIABLE: Final = "GITHUB_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTask:
    """What the API is asked for. ``purpose`` begins the sentence about a missing package."""

    purpose: str
    subject: str
    """What may be missing when the answer is *not found*."""
    needed: str
    """A sentence about the right that the token needs."""


COMMENTING: Final = ApiTask(
    purpose="posting comments",
    subject="the repository, pull request or comment",
    needed="The token needs to read the pull request and write its comments (in a workflow: permissions: pull-requests: write)",
)
VERIFYING: Final = ApiTask(
    purpose="verifying a stored reference",
    subject="the repository or the run",
    needed="The token needs to read workflow runs (in a workflow: permissions: actions: read)",
)


def _advice(status: int, task: ApiTask) -> str:
    match status:
        case 401:
            return "the token is refused. Is it expired, or of another server?"
        case 403:
            return f"the token may not do this. {task.needed}"
        case 404:
            return f"{task.subject} does not exist, or the token may not see it. {task.needed}"
        case 410:
            return "this is gone, or the repository has its issues switched off"
        case 422:
            return "GitHub does not take this"
    return "GitHub's API does not answer as expected"


_VERSION: Final = "2022-11-28"
"""Of the API, as GitHub Enterprise Server from 3.9 on has it, too."""


def github_token(environment: Mapping[str, str], file: Path | None) -> Token:
    """The token of a file, else of the environment. Raises ``UsageError`` and ``FileAccessError``."""
    return read_token(environment, file, variable=VARIABLE)


def github_address(text: str | None) -> ApiAddress:
    """The address of the API, by default that of github.com. Raises ``UsageError``."""
    return api_address(PUBLIC if text is None else text, api="GitHub's API", example=PUBLIC)


def _pause_asked_for(answer: Answer, *, now: datetime.datetime, times: int) -> Pause | None:
    """The pause of a rate limit, primary or secondary, or ``None``; ``times``: how often one was met before."""
    if answer.status not in (403, 429):
        return None
    after = header_seconds(answer.headers.get("retry-after"))
    if after is not None:
        return Pause(seconds=after, why="a secondary rate limit", limited=True)
    reset = header_seconds(answer.headers.get("x-ratelimit-reset"))
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        # A second more, since the moment is given in whole seconds and clocks differ.
        return Pause(seconds=max(0.0, reset - now.timestamp()) + 1.0, why="the rate limit", limited=True)
    if answer.status == 429 or b"secondary rate limit" in answer.body[:10_000].lower():
        return Pause(seconds=MINUTE * 2**times, why="a secondary rate limit", limited=True)
    return None


def _error_texts(answer: Answer) -> Iterator[str]:
    document = json_in(answer)
    if not isinstance(document, dict):
        return
    yield from error_text(document.get("message"))
    errors = document.get("errors")
    for error in errors[:3] if isinstance(errors, list) else [errors]:
        yield from error_text(error)
        if isinstance(error, dict):
            parts = [part for key in ("field", "code", "message") for part in error_text(error.get(key))]
            yield from error_text(" ".join(parts))


class GitHubApi(RestApi):
    """One server, one token. ``patience``: seconds of waiting, in all, before a limit or fault becomes an error."""

    forge: ClassVar = "GitHub"
    request_id: ClassVar = "x-github-request-id"
    remaining: ClassVar = "x-ratelimit-remaining"

    def __init__(
        self,
        address: ApiAddress,
        token: Token,
        *,
        clock: Clock,
        patience: float,
        task: ApiTask = COMMENTING,
        ca_file: Path | None = None,
    ) -> None:
        super().__init__(address, token, clock=clock, patience=patience, purpose=task.purpose, ca_file=ca_file)
        self._sansio = _sansio(task.purpose)
        self._task = task

    def headers(self) -> dict[str, str]:
        """As gidgethub makes them."""
        made: dict[str, str] = self._sansio.create_headers(
            f"kafka-quotas/{reconciler.__version__}", oauth_token=self.token.reveal()
        )
        return {**made, "x-github-api-version": _VERSION}

    def pause_asked_for(self, answer: Answer, *, now: datetime.datetime, times: int) -> Pause | None:
        """Of a primary or secondary limit."""
        return _pause_asked_for(answer, now=now, times=times)

    def refusal(self, answer: Answer) -> str:
        """With the permission that GitHub asks for."""
        needed = answer.headers.get("x-accepted-github-permissions", "")
        wanted = f". GitHub asks for the permission {needed}" if needed and answer.status == 403 else ""
        return refusal_words(answer, _advice(answer.status, self._task), _error_texts(answer), more=wanted)

    def decipher(self, answer: Answer) -> tuple[object, str | None]:
        """As gidgethub reads it."""
        try:
            document, _, following = self._sansio.decipher_response(answer.status, answer.headers, answer.body)
        except (ValueError, LookupError, ArithmeticError, OSError, RecursionError) as error:
            raise NoAnswerError("the answer is cut short or is not JSON") from error
        return document, following


def _sansio(purpose: str) -> Any:
    try:
        from gidgethub import sansio
    except ImportError as error:
        raise MissingPackageError(f"{purpose} needs", "gidgethub") from error
    module: ModuleType = sansio
    return module
