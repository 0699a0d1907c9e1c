"""A forge's REST API: requests that wait out limits, try again after faults, and end in one clear sentence.

Sources: GitHub's documentation "Rate limits for the REST API" and "Best practices" (``retry-after`` first, then the moment in
``x-ratelimit-reset`` once nothing remains, else at least a minute, growing), its OpenAPI description (``basic-error``,
``validation-error``), and GitLab's documentation "REST API" and "Rate limits" (``Retry-After``, ``RateLimit-Reset``).
"""

from __future__ import annotations

import abc
import datetime
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final, NoReturn

import reconciler
from reconciler.errors import ForgeError, UsageError
from reconciler.http import Answer, ApiAddress, Http, NoAnswerError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.ports import Clock

MOST_TRIES: Final = 4
"""Requests in a row that got no proper answer."""

_MINUTE: Final = 60.0
_SECONDS: Final = re.compile(r"[0-9]{1,12}")
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;\s*rel="next"')
_TOKEN: Final = re.compile(r"[!-~]{1,4096}")
"""Visible ASCII, as fits into a header: a line break in a token would begin another header."""
_SHOWN: Final = 600
_log: Final = logging.getLogger(__name__)
_MOST_PAGES: Final = 100
_PASSING: Final = frozenset({500, 502, 503, 504})


def read_token(environment: Mapping[str, str], variable: str) -> str:
    """The token of the environment. Raises ``UsageError`` without one."""
    token = environment.get(variable, "").strip()
    if not _TOKEN.fullmatch(token):
        raise UsageError(f"the environment variable {variable} has no token. Set it to one word of visible ASCII characters")
    return token


class RestApi(abc.ABC):
    """One server, one token. ``patience``: seconds of waiting, in all, before a limit or fault becomes an error."""

    title: ClassVar[str]
    """The name of the forge in messages."""
    purpose: ClassVar[str] = "posting comments"
    """Begins the sentence about a missing package."""
    subject: ClassVar[str]
    """What may be missing when the answer is *not found*. ``needed``: a sentence about the rights of the token."""
    needed: ClassVar[str]

    def __init__(self, address: ApiAddress, token: str, *, clock: Clock, patience: float, ca_file: Path | None = None) -> None:
        self._address = address
        self._token = token
        self._clock = clock
        self._left = patience
        self._limits_met = 0
        self._http = Http(address, purpose=self.purpose, extra=self.title.lower(), ca_file=ca_file)

    @abc.abstractmethod
    def headers(self, token: str) -> dict[str, str]:
        """The headers of every request that are the forge's own, with the token."""

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

    def send(self, method: str, path: str, document: Mapping[str, object] | None, *, doing: str) -> object:
        """Change something; the answer's document, ``None`` for an answer without one.

        A request that got no answer is sent again, so it may be done twice.
        """
        return self._ask(method, self._address.url(path), document=document, doing=doing)[0]

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def unexpected(self, doing: str) -> ForgeError:
        """The error for a document that is not what the forge describes."""
        return ForgeError(f"cannot {doing}: the answer is not what {self.title}'s API gives. Check the address of the API")

    def _ask(
        self, method: str, url: str, *, doing: str, document: Mapping[str, object] | None = None
    ) -> tuple[object, str | None]:
        """The document, and the link to the next page."""
        faults = 0
        while True:
            try:
                answer = self._answer(method, url, document)
                seconds = _limit_of(answer, now=self._clock.now(), times=self._limits_met)
                if seconds is None:
                    return self._understood(answer, doing)
                self._limits_met += 1
                why = "the rate limit is reached"
            except NoAnswerError as error:
                faults += 1
                if error.final or faults == MOST_TRIES:
                    self._fail(doing, str(error))
                seconds, why = float(2 ** (faults - 1)), str(error)
            if seconds > self._left:
                self._fail(doing, f"{why}. Only {self._left:.0f} s of waiting are left, and the next try is in {seconds:.0f} s")
            self._left -= seconds
            reason = self._hidden(why)
            log_event(_log, "waiting for the forge", level=logging.INFO, forge=self.title, wait_seconds=seconds, reason=reason)
            self._clock.sleep(seconds)

    def _answer(self, method: str, url: str, document: Mapping[str, object] | None) -> Answer:
        headers = {"user-agent": f"kafka-quotas/{reconciler.__version__}", **self.headers(self._token)}
        if document is not None:
            headers["content-type"] = "application/json; charset=utf-8"
        begun = time.monotonic()
        answer = self._http.send(method, url, headers=headers, body=None if document is None else json.dumps(document).encode())
        log_event(
            _log,
            "forge answered",
            forge=self.title,
            method=method,
            url=self._hidden(url),
            status=answer.status,
            bytes=len(answer.body),
            milliseconds=round((time.monotonic() - begun) * 1000, 1),
            request_id=_header(answer, "request-id") or answer.headers.get("x-github-request-id"),
            rate_limit_remaining=_header(answer, "ratelimit-remaining"),
        )
        if answer.status in _PASSING:
            raise NoAnswerError(f"the server answers with HTTP status {answer.status}")
        return answer

    def _understood(self, answer: Answer, doing: str) -> tuple[object, str | None]:
        """Raises ``ForgeError`` for a refusal, and ``NoAnswerError`` for an answer that is cut short."""
        try:
            document: object = json.loads(answer.body) if answer.body.strip() else None
        except (ValueError, RecursionError):
            document = None
        if not 200 <= answer.status < 300:
            needed = answer.headers.get("x-accepted-github-permissions", "") if answer.status == 403 else ""
            more = f". {self.title} asks for the permission {needed}" if needed else ""
            words = f"{self._advice(answer.status)} (HTTP status {answer.status}{_reason(document)}{more})"
            raise ForgeError(f"cannot {doing}: {escaped(self._hidden(words))}", status=answer.status)
        if document is None and not (answer.status in (202, 204) and answer.body.strip() in (b"", b"null")):
            raise NoAnswerError("the answer is cut short or is not JSON")
        following = _NEXT.search(answer.headers.get("link", ""))
        return document, following[1] if following else None

    def _advice(self, status: int) -> str:
        """Return what to do about a request that was refused with this HTTP status."""
        words = {
            401: "the server refuses the token. Check that it has not expired and is of this server",
            403: f"the token may not do this. {self.needed}",
            404: f"{self.subject} does not exist, or the token may not see it. {self.needed}",
        }
        return words.get(status, f"{self.title} does not take this")

    def _hidden(self, text: str) -> str:
        """Text of a server, without the token if it sends that back."""
        return text.replace(self._token, "***")

    def _fail(self, doing: str, words: str) -> NoReturn:
        raise ForgeError(f"cannot {doing}: {self.title}'s API at {self._address.url('')}: {escaped(self._hidden(words))}")


def _header(answer: Answer, name: str) -> str | None:
    return answer.headers.get(f"x-{name}", answer.headers.get(name))


def _limit_of(answer: Answer, *, now: datetime.datetime, times: int) -> float | None:
    """The seconds to wait at a rate limit, or ``None``; ``times``: how often one was met before."""
    if answer.status not in (403, 429):
        return None
    after, reset = (header or "" for header in (answer.headers.get("retry-after"), _header(answer, "ratelimit-reset")))
    if _SECONDS.fullmatch(after):
        return float(after)
    if _SECONDS.fullmatch(reset) and _header(answer, "ratelimit-remaining") == "0":
        # A second more, since the moment is given in whole seconds and clocks differ.
        return max(0.0, float(reset) - now.timestamp()) + 1.0
    is_limit = answer.status == 429 or b"secondary rate limit" in answer.body[:10_000].lower()
    return _MINUTE * 2**times if is_limit else None


def _reason(document: object) -> str:
    """The texts of an error, which are by field, in lists or alone."""
    fields = ("message", "error", "error_description", "errors")
    texts = [document[name] for name in fields if document.get(name)] if isinstance(document, dict) else []
    shown = "; ".join(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for text in texts)
    return f": {shown[:_SHOWN]}" if shown else ""
