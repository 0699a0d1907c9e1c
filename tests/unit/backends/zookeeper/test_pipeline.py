"""Many requests in flight: begun in order, answered in order, never more than the window."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError

from reconciler.backends.zookeeper.session import Pipeline


class Request:
    """A request whose answer is known; ``open`` counts those that nobody has waited for."""

    open = 0
    most = 0

    def __init__(self, answer: object) -> None:
        self._answer = answer
        Request.open += 1
        Request.most = max(Request.most, Request.open)

    def get(self, *, timeout: float) -> Any:
        assert timeout == 3.0
        Request.open -= 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.fixture(autouse=True)
def nothing_in_flight() -> None:
    Request.open = Request.most = 0


def doubling(number: int) -> Generator[Request, Any, int]:
    once = yield Request(number)
    if number % 3 == 0:
        return int(once)
    return int((yield Request(once * 2)))


def test_results_are_in_the_order_of_the_tasks_whenever_they_end() -> None:
    results = Pipeline(window=4, answer_seconds=3.0).run(doubling(number) for number in range(50))

    assert results == [number if number % 3 == 0 else 2 * number for number in range(50)]
    assert Request.most == 4


def test_a_task_may_end_without_a_request() -> None:
    def silent() -> Generator[Request, Any, str]:
        return "done"
        yield

    assert Pipeline(answer_seconds=3.0).run([silent(), silent()]) == ["done", "done"]


def test_a_task_is_thrown_the_error_of_its_request() -> None:
    def careful() -> Generator[Request, Any, str]:
        try:
            yield Request(NoNodeError())
        except NoNodeError:
            return str((yield Request("made")))
        return "there"

    assert Pipeline(answer_seconds=3.0).run([careful()]) == ["made"]


def test_what_no_task_catches_ends_the_flight_and_begins_no_further_task() -> None:
    begun = []

    def failing(number: int) -> Generator[Request, Any, int]:
        begun.append(number)
        yield Request(ConnectionLoss() if number == 2 else number)
        return number

    with pytest.raises(ConnectionLoss):
        Pipeline(window=2, answer_seconds=3.0).run(failing(number) for number in range(100))
    assert begun == [0, 1, 2, 3]


def test_asking_about_many_gives_pairs_in_order_and_none_for_a_node_that_is_not_there() -> None:
    asked = Pipeline(window=3, answer_seconds=3.0).ask(lambda n: Request(NoNodeError() if n == 1 else n * 10), range(5))

    assert list(asked) == [(0, 0), (1, None), (2, 20), (3, 30), (4, 40)]
    assert Request.most == 3


def test_asking_raises_every_other_error() -> None:
    with pytest.raises(NoAuthError):
        list(Pipeline(answer_seconds=3.0).ask(lambda _: Request(NoAuthError()), [1]))
