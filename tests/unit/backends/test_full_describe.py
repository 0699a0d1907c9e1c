"""A cluster too large for one answer is read in parts; one too large even for that is left in peace, with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from reconciler.backends.broker.cluster import SHAPES, BrokerCluster
from reconciler.backends.broker.settings import Security
from reconciler.backends.broker.transport import Transport
from reconciler.errors import AuthorizationError, BackendError, RequestRefusedError, UnreachableError
from reconciler.model.entity import DEFAULT, LEGAL_SHAPES, Entity
from reconciler.model.state import Quotas
from reconciler.ports import EntityFilter
from tests.builders import client, ip, pair, user
from tests.fakes import FakeCluster

NO_MEMORY = RequestRefusedError("unexpected", error_code=-1)
ALL = {
    entity: {"producer_byte_rate": 1.0}
    for entity in (
        user("a"),
        user(),
        client("c"),
        client(),
        pair("a", "c"),
        pair(DEFAULT, "c"),
        pair("a", DEFAULT),
        ip("::1"),
        ip(),
    )
}


class Broker(BrokerCluster):
    """Has all of ``ALL``, and no memory for filters of these numbers of components."""

    def __init__(self, *too_much: int, error: BackendError = NO_MEMORY) -> None:
        super().__init__(cast("Transport", None), name=None, security=Security())
        self.asked: list[EntityFilter] = []
        self._too_much = too_much
        self._error = error
        self._cluster = FakeCluster(ALL)

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        self.asked.append(entity_filter)
        if len(entity_filter.components) in self._too_much:
            raise self._error
        return self._cluster.describe(entity_filter)


def test_a_broker_that_can_is_asked_once() -> None:
    broker = Broker()
    assert broker._describe_everything() == ALL
    assert (len(broker.asked), broker._in_parts) == (1, False)


def test_a_broker_without_memory_for_all_is_asked_in_parts_and_never_for_all_again() -> None:
    broker = Broker(0)
    assert broker._describe_everything() == ALL
    assert broker._in_parts
    assert len(broker.asked) == 5
    assert broker._describe_everything() == ALL
    assert [len(asked.components) for asked in broker.asked[5:]] == [1, 1, 2, 1]


def test_every_shape_that_kafka_has_is_a_part() -> None:
    assert {tuple(t.value for t in shape) for shape in SHAPES} == LEGAL_SHAPES


def test_a_part_that_is_too_much_is_the_end_and_says_what_to_raise() -> None:
    broker = Broker(0, 2)
    with pytest.raises(RequestRefusedError, match=r"those of user and client-id alone.*KAFKA_HEAP_OPTS") as refused:
        broker._describe_everything()
    assert refused.value.error_code == -1
    assert len(broker.asked) == 1 + 3


@pytest.mark.parametrize(
    "error", [UnreachableError("gone"), AuthorizationError("no", operation="x"), RequestRefusedError("no", error_code=42)]
)
def test_other_errors_are_no_reason_for_parts(error: BackendError) -> None:
    broker = Broker(0, error=error)
    with pytest.raises(type(error)):
        broker._describe_everything()
    assert len(broker.asked) == 1
