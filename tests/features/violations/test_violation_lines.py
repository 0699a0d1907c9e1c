"""Reading a broker's log of quota violations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_layouts import encode_user
from reconciler.features.violations.log import SecondsOfThrottles
from reconciler.traffic import Kind

HEAD = b"[2026-11-22 14:03:00,123] DEBUG [ThrottledChannelReaper-Produce]: "
TAIL = b" (org.apache.kafka.server.quota.ClientQuotaManager)\n"
AT_US = 1_795_356_180_123_000


def line(sensor: str, delay: str = "7284") -> bytes:
    return HEAD + f"Quota violated for sensor ({sensor}). Delay time: ({delay})".encode() + TAIL


def read(*lines: bytes, broker: int = 1, zone: str = "UTC") -> SecondsOfThrottles:
    throttles = SecondsOfThrottles(zone)
    for text in lines:
        throttles.add(text, broker)
    return throttles


@pytest.mark.parametrize(
    ("sensor", "kind", "user", "client_id"),
    [
        ("Produce-alice:app", Kind.PRODUCE, "alice", "app"),
        ("Fetch-alice:", Kind.FETCH, "alice", None),
        ("Request-:app", Kind.REQUEST, None, "app"),
        ("ControllerMutation-CN%3Dorders%2CO%3DX:a:b", Kind.MUTATION, "CN=orders,O=X", "a:b"),
        ("Produce-a%2Db:c-d%3A", Kind.PRODUCE, "a-b", "c-d%3A"),
    ],
)
def test_a_violation_names_its_client_and_delay(sensor: str, kind: Kind, user: str | None, client_id: str | None) -> None:
    (throttle,) = read(b"[2026-11-22 14:03:00,000] INFO other\n", line(sensor), broker=3).in_order()
    assert (throttle.broker, throttle.kind, throttle.user, throttle.client_id) == (3, kind, user, client_id)
    assert (throttle.begin_us, throttle.end_us, throttle.longest_ms) == (AT_US, AT_US + 7_284_000, 7284)


def test_a_time_zone_applies_to_times_without_an_offset() -> None:
    (throttle,) = read(line("Produce-a:b"), zone="Europe/Berlin").in_order()
    assert throttle.begin_us == AT_US - 3_600_000_000


@pytest.mark.parametrize("text", [line("Replication-a:b"), line("Produce-a"), line("Produce-a:b", "x"), line("Produce-a:b")[27:]])
def test_what_cannot_be_read_is_counted(text: bytes) -> None:
    throttles = read(text)
    assert (throttles.in_order(), throttles.unreadable) == ((), 1)


@given(st.text(min_size=1, max_size=20), st.text(max_size=20), st.integers(0, 10**9))
def test_any_names_come_back(user: str, client_id: str, delay: int) -> None:
    (throttle,) = read(line(f"Produce-{encode_user(user)}:{client_id}", str(delay))).in_order()
    assert (throttle.user, throttle.client_id or "", throttle.throttle_ms) == (user, client_id, delay)


def test_a_client_id_cannot_end_the_line_sooner() -> None:
    (throttle,) = read(line("Produce-alice:app). Delay time: (1)")).in_order()
    assert (throttle.client_id, throttle.throttle_ms) == ("app). Delay time: (1)", 7284)
