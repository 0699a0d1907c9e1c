"""Reads a Prometheus server piece by piece, in the order of time: as long a time at once as the server and memory allow."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeVar

from reconciler.errors import TrafficError
from reconciler.features.prometheus.server_api import PrometheusApi, TooManySamplesError

_SHORTEST_S: Final = 60
_FIRST_S: Final = 300
"""The first piece shows how large answers are."""
_BYTES_AT_ONCE: Final = 48 * 1024 * 1024
_AHEAD: Final = 2
"""The server works on so many pieces while this process decodes another one."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Piece:
    """The time after ``begin_s``, up to ``end_s``: seconds since 1970."""

    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class AnsweredPiece:
    """``last``: no other piece of its page follows. ``page``: the place of the page among those that were asked for."""

    page: int
    piece: Piece
    last: bool
    answers: tuple[tuple[Piece, bytes], ...]
    """JSON that is not decoded."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    page: int
    piece: Piece
    last: bool
    result: Callable[[], tuple[tuple[Piece, bytes], ...]]


class PieceReader:
    """Reads pages of one selector."""

    def __init__(self, api: PrometheusApi, selector: str) -> None:
        self._api, self._selector = api, selector
        self._length_s = _FIRST_S
        self._longest_s: float = float("inf")

    def read(self, pages: Sequence[Piece]) -> Iterator[AnsweredPiece]:
        """The answers, in the order of the pages. Raises ``TrafficError``."""
        plan = self._plan(pages)
        waiting: deque[_Waiting] = deque()
        self._begin(plan, waiting, 1)
        while waiting:
            first = waiting.popleft()
            answers = first.result()
            # The length of later pieces depends on the answers so far.
            self._adapt(first.piece, sum(len(answer) for _, answer in answers))
            self._begin(plan, waiting, _AHEAD)
            yield AnsweredPiece(first.page, first.piece, first.last, answers)

    def _begin(self, plan: Iterator[tuple[int, Piece, bool]], waiting: deque[_Waiting], count: int) -> None:
        while len(waiting) < count and (planned := next(plan, None)) is not None:
            waiting.append(_Waiting(*planned, _in_background(functools.partial(self._answers, planned[1]))))

    def _plan(self, pages: Sequence[Piece]) -> Iterator[tuple[int, Piece, bool]]:
        for number, page in enumerate(pages):
            begin = page.begin_s
            while begin < page.end_s:
                rest = page.end_s - begin
                pieces = max(1, -(-rest // max(_SHORTEST_S, min(self._length_s, self._longest_s))))
                end = page.end_s if pieces == 1 else begin + max(1, round(rest / pieces))
                yield number, Piece(begin, end), end >= page.end_s
                begin = end

    def _adapt(self, piece: Piece, size: int) -> None:
        wanted = (piece.end_s - piece.begin_s) * _BYTES_AT_ONCE / max(1, size)
        self._length_s = max(_SHORTEST_S, min(86_400, int(wanted)))

    def _answers(self, piece: Piece) -> tuple[tuple[Piece, bytes], ...]:
        """The answer for a piece; for its halves where that is too much at once."""
        length_s = max(1, round(piece.end_s - piece.begin_s))
        try:
            answer = self._api.range_samples(self._selector, end_s=piece.end_s, length_s=length_s)
        except TooManySamplesError as error:
            if length_s <= _SHORTEST_S:
                advice = (
                    "One minute is too much already. Choose one cluster with --match, or raise the server's limit, such as "
                    "--query.max-samples of Prometheus."
                )
                raise TrafficError(f"{error}. {advice}") from error
            half = length_s // 2
            self._longest_s = min(self._longest_s, length_s - half)
            middle = piece.end_s - half
            return (*self._answers(Piece(piece.begin_s, middle)), *self._answers(Piece(middle, piece.end_s)))
        return ((piece, answer),)


def _in_background(work: Callable[[], Result]) -> Callable[[], Result]:
    """Begin work in a thread that does not keep the process alive; the function that is returned waits for the result."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except TrafficError as error:
            future.set_exception(error)
        finally:
            if not future.done():
                future.set_exception(RuntimeError("a query ended with an error of its own"))

    threading.Thread(target=run, name="prometheus query", daemon=True).start()
    return future.result
