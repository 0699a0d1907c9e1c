"""Many requests in flight over one connection. ZooKeeper answers in the order in which it was asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from kazoo.exceptions import NoNodeError

from reconciler.backends.zookeeper.session import CLIENT_ERRORS

Result = TypeVar("Result")
Asked = TypeVar("Asked")


class Pending(Protocol):
    """A request that is on its way: kazoo's ``IAsyncResult``, as far as it is used here."""

    def get(self, *, timeout: float) -> Any:
        """Its answer. Raises what the server answers, or kazoo's timeout."""
        ...


Task: TypeAlias = Generator[Pending, Any, Result]
"""Work on one entity: it yields requests, is sent their answers, has their errors thrown in, and returns what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``window``: how many are in flight at most. ``answer_seconds``: how long to wait for one answer."""

    window: int = 512
    answer_seconds: float = 30.0

    def run(self, tasks: Iterable[Task[Result]]) -> list[Result]:
        """Run all of them, begun in their order; the results are in that order too.

        What a task does not catch ends the whole: no further one is begun, and what was sent is not waited for.
        """
        results: dict[int, Result] = {}
        waiting: deque[tuple[int, Task[Result], Pending]] = deque()
        for number, task in enumerate(tasks):
            while len(waiting) >= self.window:
                self._advance(waiting, results)
            _begin(number, task, waiting, results)
        while waiting:
            self._advance(waiting, results)
        return [results[number] for number in sorted(results)]

    def ask(self, ask: Callable[[Asked], Pending], about: Iterable[Asked]) -> Iterator[tuple[Asked, Any]]:
        """One request about each; pairs with the answers, in order, ``None`` for a node that is not there."""
        waiting: deque[tuple[Asked, Pending]] = deque()
        for one in about:
            if len(waiting) >= self.window:
                yield self._answer(*waiting.popleft())
            waiting.append((one, ask(one)))
        while waiting:
            yield self._answer(*waiting.popleft())

    def _answer(self, one: Asked, pending: Pending) -> tuple[Asked, Any]:
        try:
            return one, pending.get(timeout=self.answer_seconds)
        except NoNodeError:
            return one, None

    def _advance(self, waiting: deque[tuple[int, Task[Result], Pending]], results: dict[int, Result]) -> None:
        number, task, pending = waiting.popleft()
        try:
            try:
                answer = pending.get(timeout=self.answer_seconds)
            except CLIENT_ERRORS as error:
                following = task.throw(error)
            else:
                following = task.send(answer)
        except StopIteration as done:
            results[number] = done.value
        else:
            waiting.append((number, task, following))


def _begin(
    number: int, task: Task[Result], waiting: deque[tuple[int, Task[Result], Pending]], results: dict[int, Result]
) -> None:
    try:
        waiting.append((number, task, next(task)))
    except StopIteration as done:
        results[number] = done.value
