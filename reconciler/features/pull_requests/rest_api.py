"""A forge's REST API: requests that wait out limits, try again after faults, follow redirections, and end in one clear sentence.

What is the same for every forge stands here. A subclass knows the forge's headers, limits, errors and pages.
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

from reconciler.errors import ForgeError
from reconciler.integrations import Answer, ApiAddress, Http, NoAnswerError, Token
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.ports import Clock

MOST_TRIES: Final = 4
"""Requests in a row that got no proper answer."""

MINUTE: Final = 60.0
_LONGEST: Final = 366 * 86_400.0
_SECONDS: Final = re.compile(r"[0-9]{1,12}")

_SHOWN: Final = 300
_log: Final = logging.getLogger(__name__)
_REPEATED: Final = frozenset({301, 307, 308})
"""Redirections that ask for the same request at another address: the answers for a renamed repository."""
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


def header_seconds(header: str | None) -> float | None:
    """The whole number of a header; ``None`` for anything else."""
    if header is None or not _SECONDS.fullmatch(header.strip()):
        return None
    return min(float(header), 1e10)


def ends_at(pause: Pause, now: datetime.datetime) -> datetime.datetime:
    """When it is over, in UTC."""
    return now + datetime.timedelta(seconds=min(pause.seconds, _LONGEST))


def error_text(value: object) -> Iterator[str]:
    """A text of an answer, shortened; nothing for a value that is not a text."""
    if isinstance(value, str) and value:
        yield value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


def json_in(answer: Answer) -> object:
    """The document of an answer; ``None`` for an answer that is not JSON."""
    try:
        document: object = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return document


class RestApi(abc.ABC):
    """One server, one token. ``patience``: seconds of waiting, in all, before a limit or fault becomes an error."""

    forge: ClassVar[str]
    """The name of the forge in messages."""
    request_id: ClassVar[str]
    """The header of an answer that names the request."""
    remaining: ClassVar[str]
    """The header of an answer with the requests that are left."""

    def __init__(
        self,
        address: ApiAddress,
        token: Token,
        *,
        clock: Clock,
        patience: float,
        purpose: str = "posting comments",
        ca_file: Path | None = None,
    ) -> None:
        self._address = address
        self.token = token
        self._clock = clock
        self._left = patience
        self._limits_met = 0
        self._http = Http(address, purpose=purpose, extra=self.forge.lower(), ca_file=ca_file)

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
            forge=self.forge,
            method=method,
            url=self.token.hidden_in(url),
            status=answer.status,
            bytes=len(answer.body),
            milliseconds=round((time.monotonic() - begun) * 1000, 1),
            request_id=answer.headers.get(self.request_id),
            rate_limit_remaining=answer.headers.get(self.remaining),
        )
        return answer

    def _understood(self, answer: Answer, doing: str) -> tuple[object, str | None] | Pause:
        """The document and the link to the next page, or the pause that is asked for. Raises ``NoAnswerError`` for a fault."""
        if answer.status in _PASSING:
            raise NoAnswerError(f"the server answers with HTTP status {answer.status}")
        pause = self.pause_asked_for(answer, now=self._clock.now(), times=self._limits_met)
        if pause is not None:
            return pause
        if not 200 <= answer.status < 300:
            words = self.token.hidden_in(self.refusal(answer))
            raise ForgeError(f"cannot {doing}: {words}", status=answer.status)
        return self.decipher(answer)

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
                f"cannot {doing}: {pause.why} of {self.forge}'s API at {self._address.url('')} is reached. The limit ends at "
                f"{end:%Y-%m-%d %H:%M:%S} UTC, in {pause.seconds:.0f} s, and only {self._left:.0f} s of waiting are left (--wait)"
            )
        log_event(
            _log,
            "waiting for the forge",
            level=logging.INFO,
            forge=self.forge,
            wait_seconds=pause.seconds,
            reason=self.token.hidden_in(pause.why),
        )
        self._left -= pause.seconds
        self._clock.sleep(pause.seconds)

    def _fail(self, doing: str, words: str) -> NoReturn:
        shown = escaped(self.token.hidden_in(words))
        raise ForgeError(f"cannot {doing}: {self.forge}'s API at {self._address.url('')}: {shown}")

    @abc.abstractmethod
    def headers(self) -> dict[str, str]:
        """The headers of every request, with the token."""

    @abc.abstractmethod
    def pause_asked_for(self, answer: Answer, *, now: datetime.datetime, times: int) -> Pause | None:
        """The pause of a rate limit, or ``None``; ``times``: how often one was met before."""

    @abc.abstractmethod
    def refusal(self, answer: Answer) -> str:
        """One sentence about a refused request: the advice, the status, and the forge's own words, escaped and shortened."""

    @abc.abstractmethod
    def decipher(self, answer: Answer) -> tuple[object, str | None]:
        """The document and the link to the next page. Raises ``NoAnswerError`` for one that is cut short."""


def refusal_words(answer: Answer, advice: str, reasons: Iterator[str], *, more: str = "") -> str:
    """``ADVICE (HTTP status 403: REASON)``."""
    joined = "; ".join(reasons)
    words = f": {joined}" if joined else ""
    return f"{advice} (HTTP status {answer.status}{escaped(words)}{escaped(more)})"
