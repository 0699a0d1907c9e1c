"""A forge's REST API: requests that wait out limits, try again after faults, follow redirections, and end in one clear sentence.

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
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NoReturn

from reconciler.errors import FileAccessError, ForgeError, UsageError
from reconciler.http import Answer, ApiAddress, Http, NoAnswerError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.ports import Clock

MOST_TRIES: Final = 4
"""Requests in a row that got no proper answer."""

_MINUTE: Final = 60.0
_LONGEST: Final = 366 * 86_400.0
_SECONDS: Final = re.compile(r"[0-9]{1,12}")
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;\s*rel="next"')
_FORM: Final = re.compile(r"[!-~]{1,4096}")
"""Visible ASCII, as fits into a header: a line break in a token would begin another header."""

_SHOWN: Final = 300
_MOST_REASONS: Final = 5
_log: Final = logging.getLogger(__name__)
_REPEATED: Final = frozenset({301, 307, 308})
"""Redirections that ask for the same request at another address: the answers for a renamed repository."""
_MOST_REDIRECTIONS: Final = 5
_MOST_PAGES: Final = 100
_PASSING: Final = frozenset({500, 502, 503, 504})


class Token:
    """A token that shows itself only when asked for its text."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Token(hidden)"

    def reveal(self) -> str:
        """The secret itself, for the request."""
        return self._secret

    def hidden_in(self, text: str) -> str:
        """Text of a server, without the token if it sends that back."""
        return text.replace(self._secret, "***")


def read_token(environment: Mapping[str, str], file: Path | None, *, variable: str) -> Token:
    """The token of a file, else of the environment. Raises ``UsageError`` without one, ``FileAccessError`` for no such file."""
    where = "the file of --token-file" if file else f"the environment variable {variable}"
    secret = (_file_content(file) if file else environment.get(variable, "")).strip()
    if not secret:
        raise UsageError(f"{where} has no token. Give one in {variable} or with --token-file")
    if not _FORM.fullmatch(secret):
        raise UsageError(f"what {where} has is not a token: a token is one word of visible ASCII characters")
    return Token(secret)


def _file_content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        # Neither this nor the error's own text names the file: it may be the token itself, given where its file belongs.
        raise FileAccessError(f"cannot read the file of --token-file: {error.strerror}") from None
    except UnicodeDecodeError:
        # The error has the bytes, so it is not passed on.
        raise FileAccessError("cannot read the file of --token-file: not UTF-8 text") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait so many seconds, because of ``why``."""

    seconds: float
    why: str
    limited: bool
    """A rate limit, which ends at a known moment; else a fault that may pass."""


class RestApi(abc.ABC):
    """One server, one token. ``patience``: seconds of waiting, in all, before a limit or fault becomes an error."""

    title: ClassVar[str]
    """The name of the forge in messages."""
    purpose: ClassVar[str] = "posting comments"
    """Begins the sentence about a missing package."""

    def __init__(self, address: ApiAddress, token: Token, *, clock: Clock, patience: float, ca_file: Path | None = None) -> None:
        self._address = address
        self.token = token
        self._clock = clock
        self._left = patience
        self._limits_met = 0
        self._http = Http(address, purpose=self.purpose, extra=self.title.lower(), ca_file=ca_file)

    @abc.abstractmethod
    def headers(self) -> dict[str, str]:
        """The headers of every request, with the token."""

    @abc.abstractmethod
    def advice(self, status: int) -> str:
        """Return what to do about a request that was refused with this HTTP status."""

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
        tries = redirections = 0
        while True:
            tries += 1
            try:
                answer = self._answer(method, url, document)
                if answer.status in _REPEATED or (answer.status == 302 and method == "GET"):
                    redirections += 1
                    location = answer.headers.get("location")
                    if location is None or redirections > _MOST_REDIRECTIONS:
                        self._fail(doing, "the server's redirections lead nowhere")
                    url = self._address.joined(url, location)
                    tries = 0
                    continue
                pause = _limit_of(answer, now=self._clock.now(), times=self._limits_met)
                if pause is None:
                    return self._understood(answer, doing)
                self._limits_met += 1
            except NoAnswerError as error:
                if error.final or tries == MOST_TRIES:
                    self._fail(doing, str(error))
                pause = Pause(seconds=float(2 ** (tries - 1)), why=str(error), limited=False)
            self._wait(pause, doing)

    def _answer(self, method: str, url: str, document: Mapping[str, object] | None) -> Answer:
        headers = self.headers()
        body = None
        if document is not None:
            headers["content-type"] = "application/json; charset=utf-8"
            body = json.dumps(document).encode()
        begun = time.monotonic()
        answer = self._http.send(method, url, headers=headers, body=body)
        log_event(
            _log,
            "forge answered",
            forge=self.title,
            method=method,
            url=self.token.hidden_in(url),
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
            reasons = "; ".join(_reasons(document))
            needed = answer.headers.get("x-accepted-github-permissions", "") if answer.status == 403 else ""
            more = f". {self.title} asks for the permission {needed}" if needed else ""
            words = escaped(f"HTTP status {answer.status}{f': {reasons}' if reasons else ''}")
            refusal = self.token.hidden_in(f"{self.advice(answer.status)} ({words}{escaped(more)})")
            raise ForgeError(f"cannot {doing}: {refusal}", status=answer.status)
        if document is None and not (answer.status in (202, 204) and answer.body.strip() in (b"", b"null")):
            raise NoAnswerError("the answer is cut short or is not JSON")
        following = _NEXT.search(answer.headers.get("link", ""))
        return document, following[1] if following else None

    def _wait(self, pause: Pause, doing: str) -> None:
        if pause.seconds > self._left:
            if not pause.limited:
                self._fail(doing, f"{pause.why}, and no time is left to try again")
            end = self._clock.now() + datetime.timedelta(seconds=min(pause.seconds, _LONGEST))
            raise ForgeError(
                f"cannot {doing}: {pause.why} of {self.title}'s API at {self._address.url('')} is reached. The limit ends at "
                f"{end:%Y-%m-%d %H:%M:%S} UTC, in {pause.seconds:.0f} s, and only {self._left:.0f} s of waiting are left (--wait)"
            )
        log_event(
            _log,
            "waiting for the forge",
            level=logging.INFO,
            forge=self.title,
            wait_seconds=pause.seconds,
            reason=self.token.hidden_in(pause.why),
        )
        self._left -= pause.seconds
        self._clock.sleep(pause.seconds)

    def _fail(self, doing: str, words: str) -> NoReturn:
        shown = escaped(self.token.hidden_in(words))
        raise ForgeError(f"cannot {doing}: {self.title}'s API at {self._address.url('')}: {shown}")


def _header(answer: Answer, name: str) -> str | None:
    return answer.headers.get(f"x-{name}", answer.headers.get(name))


def _limit_of(answer: Answer, *, now: datetime.datetime, times: int) -> Pause | None:
    """The pause of a rate limit, or ``None``; ``times``: how often one was met before."""
    if answer.status not in (403, 429):
        return None
    seconds = _seconds(answer.headers.get("retry-after"))
    reset = _seconds(_header(answer, "ratelimit-reset"))
    if seconds is None and reset is not None and _header(answer, "ratelimit-remaining") == "0":
        # A second more, since the moment is given in whole seconds and clocks differ.
        seconds = max(0.0, reset - now.timestamp()) + 1.0
    if seconds is None and (answer.status == 429 or b"secondary rate limit" in answer.body[:10_000].lower()):
        seconds = _MINUTE * 2**times
    return None if seconds is None else Pause(seconds=seconds, why="the rate limit", limited=True)


def _seconds(header: str | None) -> float | None:
    return min(float(header), 1e10) if header is not None and _SECONDS.fullmatch(header.strip()) else None


def _reasons(document: object) -> Iterator[str]:
    """The texts of an error, which are by field, in lists or alone."""
    if isinstance(document, dict):
        for key in ("message", "error", "error_description", "errors"):
            yield from _texts(document.get(key))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    elif isinstance(value, dict):
        for name, reason in list(value.items())[:_MOST_REASONS]:
            reasons = reason if isinstance(reason, list) else [reason]
            yield from (f"{name} {text}" for each in reasons[:_MOST_REASONS] if isinstance(each, str) for text in _texts(each))
    elif isinstance(value, list):
        yield from (text for each in value[:_MOST_REASONS] if not isinstance(each, list) for text in _texts(each))
