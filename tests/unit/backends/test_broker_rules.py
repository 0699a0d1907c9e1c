"""The broker's rules, case by case, with its words (as a 4.3 broker gives them)."""

from __future__ import annotations

import math

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.plan import Alteration
from reconciler.resolution.broker_rules import needs_broker, refusal
from reconciler.resolution.kafka_names import IpVerdict, ip_verdict
from tests.builders import client, ip, pair, user

PRODUCER, PERCENT, CONNECTIONS = "producer_byte_rate", "request_percentage", "connection_creation_rate"
COMBINED = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"


def refused(entity: Entity, **ops: float | None) -> str | None:
    return refusal(Alteration(entity=entity, ops=ops))


@pytest.mark.parametrize("value", [1.0, 1e-7, 1.0000001, 1024.0, 2.0**63, math.nan, 5e-324])
def test_byte_rates_that_pass(value):
    assert refused(user("a"), producer_byte_rate=value) is None


@pytest.mark.parametrize(
    ("entity", "key", "value", "words"),
    [
        (user("a"), PRODUCER, 0.0, f"Quota {PRODUCER} must be greater than 0"),
        (user("a"), PRODUCER, -0.0, f"Quota {PRODUCER} must be greater than 0"),
        (user("a"), PRODUCER, -math.inf, f"Quota {PRODUCER} must be greater than 0"),
        (user("a"), PRODUCER, 0.9999999, f"{PRODUCER} cannot be a fractional value."),
        (user("a"), PRODUCER, 999.999999, f"{PRODUCER} cannot be a fractional value."),
        (user("a"), PRODUCER, math.nextafter(2.0**63, math.inf), f"Proposed value for {PRODUCER} is too large for a LONG."),
        (user("a"), PRODUCER, math.inf, f"Proposed value for {PRODUCER} is too large for a LONG."),
        (user("a"), PERCENT, -1.0, f"Quota {PERCENT} must be greater than 0"),
        (user("a"), PERCENT, math.inf, None),
        (user("a"), PERCENT, 0.5, None),
        (ip("::1"), CONNECTIONS, 2147483647.0, None),
        (ip("::1"), CONNECTIONS, 2147483648.5, f"Proposed value for {CONNECTIONS} is too large for an INT."),
        (ip("::1"), CONNECTIONS, 1.5, f"{CONNECTIONS} cannot be a fractional value."),
        (ip("::1"), CONNECTIONS, math.nan, None),
        (ip(), PRODUCER, 1.0, f"Invalid configuration key {PRODUCER}"),
        (client(), CONNECTIONS, 1.0, f"Invalid configuration key {CONNECTIONS}"),
        (user("a"), "SCRAM-SHA-256", 1.0, "Invalid configuration key SCRAM-SHA-256"),
        (user(""), PRODUCER, 1.0, "Empty user not supported"),
        (pair("a", ""), PRODUCER, 1.0, "Empty client-id not supported"),
        (ip(""), CONNECTIONS, 1.0, "Empty ip not supported"),
        (Entity.of({"group": "g"}), PRODUCER, 1.0, "Unhandled client quota entity type: group"),
        (Entity.of({"ip": "1.2.3.4", "user": "a"}), PRODUCER, 1.0, COMBINED),
        (Entity.of({"ip": DEFAULT, "client-id": DEFAULT}), CONNECTIONS, 1.0, COMBINED),
        (Entity.of({"ip": "not an address", "user": "a"}), PRODUCER, 1.0, COMBINED),
        (ip("1::2::3"), CONNECTIONS, 1.0, "1::2::3 is not a valid IP or resolvable host."),
    ],
)
def test_the_broker_s_words(entity, key, value, words):
    assert refused(entity, **{key: value}) == words


def test_removals_are_never_checked_but_their_entity_is():
    assert refused(user("a"), no_such_key=None, connection_creation_rate=None) is None
    assert refused(user(""), producer_byte_rate=None) == "Empty user not supported"


@pytest.mark.parametrize("name", ["x" * 32_768, "é" * 16_384, "\ud800"])
def test_what_fits_into_no_request(name):
    assert refused(user(name), producer_byte_rate=1.0) is not None
    assert refused(user("x" * 32_767), producer_byte_rate=1.0) is None


@pytest.mark.parametrize(
    "name",
    ["1", "1.2", "1.65535", "010.0.0.1", "4294967295", "::", "[::1]", "::1%0", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "00001::"],
)
def test_java_s_idea_of_a_literal_address(name):
    assert ip_verdict(name) is IpVerdict.LITERAL


@pytest.mark.parametrize(
    "name", ["", "[]", "[1.2.3.4]", "[g]", "::1%", ":1", "12345::", "1:2:3:4:5:6:7:8::", "1.2.3.4:80", "::1/128"]
)
def test_what_no_broker_takes_for_an_address(name):
    assert ip_verdict(name) is IpVerdict.INVALID


@pytest.mark.parametrize(
    "name", ["localhost", "1.2.3.4.", "256.1.1.1", "0x7f.1", "::1%lo", "::ffff:1.2.3.4%1", "\uff11.2.3.4", "10.0.0.0/8"]
)
def test_what_only_the_controller_can_tell(name):
    assert needs_broker(ip(name))
    assert refused(ip(name), connection_creation_rate=1.0) is None
    assert not needs_broker(user(name))
