"""The broker's rules, case by case, with its words (as a 4.3 broker gives them)."""

from __future__ import annotations

import pytest

from reconciler.model.entity import Entity
from reconciler.model.plan import Alteration
from reconciler.resolution.broker_rules import needs_broker, refusal
from tests.builders import ip, user

PRODUCER, PERCENT, CONNECTIONS = "producer_byte_rate", "request_percentage", "connection_creation_rate"


def refused(entity: Entity, **ops: float | None) -> str | None:
    return refusal(Alteration(entity=entity, ops=ops))


@pytest.mark.parametrize("name", ["x" * 32_768, "é" * 16_384, "\ud800"])
def test_what_fits_into_no_request(name):
    assert refused(user(name), producer_byte_rate=1.0) is not None
    assert refused(user("x" * 32_767), producer_byte_rate=1.0) is None


@pytest.mark.parametrize(
    "name", ["localhost", "1.2.3.4.", "256.1.1.1", "0x7f.1", "::1%lo", "::ffff:1.2.3.4%1", "\uff11.2.3.4", "10.0.0.0/8"]
)
def test_what_only_the_controller_can_tell(name):
    assert needs_broker(ip(name))
    assert refused(ip(name), connection_creation_rate=1.0) is None
    assert not needs_broker(user(name))
