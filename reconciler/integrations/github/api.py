"""GitHub's REST API: requests that wait out limits, try again after faults, follow redirections, and end in one clear sentence.

gidgethub knows what headers and answers mean (https://docs.github.com/rest); this decides what to do about them. Sources:
GitHub's documentation of its REST API, "Rate limits" and "Best practices": ``retry-after`` first, then the moment in
``x-ratelimit-reset`` once nothing remains, else at least a minute, growing; and that 5xx may pass. The forms of errors are
those of ``basic-error`` and ``validation-error`` in GitHub's OpenAPI description.
"""

from __future__ import annotations

import datetime
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

import reconciler
from reconciler.errors import ForgeError, MissingDependencyError
from reconciler.integrations.github.transport import Answer, ApiAddress, Http, NoAnswerError, Token
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.ports import Clock

if TYPE_CHECKING:
    from types import ModuleType


MOST_TRIES: Final = 4
"""Requests in a row that got no proper answer."""

_MINUTE: Final = 60.0
_LONGEST: Final = 366 * 86_400.0
_SECONDS: Final = re.compile(r"[0-9]{1,12}")

_SHOWN: Final = 300
_NEEDED: Final = (
    "the token needs to read the pull request and write its comments (in a workflow: permissions: pull-requests: write)"
)
_ADVICE: Final = {
    401: "the token is refused; is it expired, or of another server?",
    403: f"the token may not do this; {_NEEDED}",
    404: f"the repository, pull request or comment does not exist, or the token may not see it; {_NEEDED}",
    410: "this is gone, or the repository has its issues switched off",
    422: "GitHub does not take this",
}
_log: Final = logging.getLogger(__name__)
_VERSION: Final = "2022-11-28"
"""Of the API, as GitHub Enterprise Server from 3.9 on has it, too."""
_REPEATED: Final = frozenset({301, 307, 308})
"""Redirections that ask for the same request at another address: GitHub's answers for a renamed repository."""
_MOST_REDIRECTIONS: Final = 5
_MOST_PAGES: Final = 100
_PASSING: Final = frozenset({500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait so many seconds, because of ``why``."""

    seconds: float
    why: str
    limited: bool
    """A rate limit, which ends at a known moment; else a fault that may pass."""


def pause_after_fault(tries: int, why: str) -> Pause:
    """After the so many-th try in a row without a proper answer: 1, 2, 4 seconds."""
    return Pause(seconds=float(2 ** (tries - 1)), why=why, limited=False)


def pause_asked_for(answer: Answer, *, now: datetime.datetime, times: int) -> Pause | None:
    """The pause of a rate limit, primary or secondary, or ``None``; ``times``: how often one was met before."""
    if answer.status not in (403, 429):
        return None
    after = _header_seconds(answer.headers.get("retry-after"))
    if after is not None:
        return Pause(seconds=after, why="a secondary rate limit", limited=True)
    reset = _header_seconds(answer.headers.get("x-ratelimit-reset"))
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        # A second more, since the moment is given in whole seconds and clocks differ.
        return Pause(seconds=max(0.0, reset - now.timestamp()) + 1.0, why="the rate limit", limited=True)
    if answer.status == 429 or b"secondary rate limit" in answer.body[:10_000].lower():
        return Pause(seconds=_MINUTE * 2**times, why="a secondary rate limit", limited=True)
    return None


def _header_seconds(header: str | None) -> float | None:
    if header is None or not _SECONDS.fullmatch(header.strip()):
        return None
    return min(float(header), 1e10)


def ends_at(pause: Pause, now: datetime.datetime) -> datetime.datetime:
    """When it is over, in UTC."""
    return now + datetime.timedelta(seconds=min(pause.seconds, _LONGEST))


def refusal(answer: Answer) -> str:
    """One sentence: the advice, the status, and GitHub's own words, escaped and shortened."""
    reasons = "; ".join(_error_texts(answer))
    needed = answer.headers.get("x-accepted-github-permissions", "")
    wanted = f"; the permission that is asked for: {needed}" if needed and answer.status == 403 else ""
    advice = _ADVICE.get(answer.status, "GitHub's API does not answer as expected")
    words = f" {reasons}" if reasons else ""
    return f"{advice} (HTTP status {answer.status}{escaped(f':{words}' if words else '')}{escaped(wanted)})"


def _error_texts(answer: Answer) -> Iterator[str]:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    yield from _error_text(document.get("message"))
    errors = document.get("errors")
    for error in errors[:3] if isinstance(errors, list) else [errors]:
        yield from _error_text(error)
        if isinstance(error, dict):
            parts = [part for key in ("field", "code", "message") for part in _error_text(error.get(key))]
            yield from _error_text(" ".join(parts))


def _error_text(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


class GitHubApi:
    """One server, one token. ``patience``: seconds of waiting, in all, before a limit or fault becomes an error."""

    def __init__(self, address: ApiAddress, token: Token, *, clock: Clock, patience: float) -> None:
        self._address = address
        self._token = token
        self._clock = clock
        self._left = patience
        self._limits_met = 0
        self._http = Http(address)
        self._sansio = _sansio()

    def get(self, path: str, *, doing: str) -> object:
        """The document at a path. ``doing`` completes "cannot ..." in errors. Raises ``ForgeError``, as all of these do."""
        return self._ask("GET", self._address.url(path), doing=doing)[0]

    def pages(self, path: str, *, doing: str) -> Iterator[object]:
        """The items of a list, page after page."""
        url: str | None = self._address.url(path)
        for _ in range(_MOST_PAGES):
            document, following = self._ask("GET", str(url), doing=doing)
            if not isinstance(document, list):
                self._fail(doing, "the answer is not a list")
            yield from document
            if following is None:
                return
            url = self._address.joined(str(url), following)
        self._fail(doing, f"the list has more than {_MOST_PAGES} pages")

    def send(self, method: str, path: str, document: Mapping[str, str] | None, *, doing: str) -> object:
        """Change something; the answer's document, ``None`` for an answer without one.

        A request that got no answer is sent again, so it may be done twice.
        """
        return self._ask(method, self._address.url(path), document=document, doing=doing)[0]

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def _ask(self, method: str, url: str, *, doing: str, document: Mapping[str, str] | None = None) -> tuple[object, str | None]:
        tries = redirections = 0
        while True:
            tries += 1
            try:
                answer = self._answer(method, url, document)
                if answer.status in _REPEATED or (answer.status == 302 and method == "GET"):
                    redirections += 1
                    url = self._redirected(url, answer, redirections, doing)
                    tries = 0
                    continue
                result = self._understood(answer, doing)
            except NoAnswerError as error:
                if error.final or tries == MOST_TRIES:
                    self._fail(doing, str(error))
                self._wait(pause_after_fault(tries, str(error)), doing)
                continue
            if not isinstance(result, Pause):
                return result
            self._limits_met += 1
            self._wait(result, doing)

    def _answer(self, method: str, url: str, document: Mapping[str, str] | None) -> Answer:
        headers: dict[str, str] = self._sansio.create_headers(
            f"kafka-quotas/{reconciler.__version__}", oauth_token=self._token.reveal()
        )
        headers["x-github-api-version"] = _VERSION
        body = None
        if document is not None:
            headers["content-type"] = "application/json; charset=utf-8"
            body = json.dumps(document).encode()
        begun = time.monotonic()
        answer = self._http.send(method, url, headers=headers, body=body)
        log_event(
            _log,
            "GitHub answered",
            method=method,
            url=self._token.hidden_in(url),
            status=answer.status,
            bytes=len(answer.body),
            milliseconds=round((time.monotonic() - begun) * 1000, 1),
            request_id=answer.headers.get("x-github-request-id"),
            rate_limit_remaining=answer.headers.get("x-ratelimit-remaining"),
        )
        return answer

    def _understood(self, answer: Answer, doing: str) -> tuple[object, str | None] | Pause:
        """The document and the link to the next page, or the pause that is asked for. Raises ``NoAnswerError`` for a fault."""
        if answer.status in _PASSING:
            raise NoAnswerError(f"the server answers with HTTP status {answer.status}")
        pause = pause_asked_for(answer, now=self._clock.now(), times=self._limits_met)
        if pause is not None:
            return pause
        if not 200 <= answer.status < 300:
            words = self._token.hidden_in(refusal(answer))
            raise ForgeError(f"cannot {doing}: {words}", status=answer.status)
        try:
            document, _, following = self._sansio.decipher_response(answer.status, answer.headers, answer.body)
        except (ValueError, LookupError, ArithmeticError, OSError, RecursionError) as error:
            raise NoAnswerError("the answer is cut short or is not JSON") from error
        return document, following

    def _redirected(self, url: str, answer: Answer, count: int, doing: str) -> str:
        location = answer.headers.get("location")
        if location is None or count > _MOST_REDIRECTIONS:
            self._fail(doing, "the server's redirections lead nowhere")
        return self._address.joined(url, location)

    def _wait(self, pause: Pause, doing: str) -> None:
        if pause.seconds > self._left:
            if not pause.limited:
                self._fail(doing, f"{pause.why}, and no time is left to try again")
            end = ends_at(pause, self._clock.now())
            raise ForgeError(
                f"cannot {doing}: {pause.why} of GitHub's API at {self._address.url('')} is reached; it ends at "
                f"{end:%Y-%m-%d %H:%M:%S} UTC, in {pause.seconds:.0f} s, and only {self._left:.0f} s of waiting are left (--wait)"
            )
        log_event(
            _log, "waiting for GitHub", level=logging.INFO, wait_seconds=pause.seconds, reason=self._token.hidden_in(pause.why)
        )
        self._left -= pause.seconds
        self._clock.sleep(pause.seconds)

    def _fail(self, doing: str, words: str) -> NoReturn:
        shown = escaped(self._token.hidden_in(words))
        raise ForgeError(f"cannot {doing}: GitHub's API at {self._address.url('')}: {shown}")


def _sansio() -> Any:
    try:
        from gidgethub import sansio
    except ImportError as error:
        words = "posting comments needs gidgethub, which is not installed: pip install 'kafka-quota-reconciler[github]'"
        raise MissingDependencyError(words) from error
    module: ModuleType = sansio
    return module
