"""The script of the benchmark of fidelity: arrivals that are the same every time, and the bytes they are sent as."""

from __future__ import annotations

import io
import itertools
import struct

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from benchmarks.fidelity import frames
from benchmarks.fidelity.arrivals import SMALLEST, Arrival, Bursts, Client, Poisson, Timer, arrivals, rounded
from benchmarks.fidelity.rehearsal import connections_needed, planned_throttles
from benchmarks.fidelity.scenarios import MIXED, REQUEST_TIME
from reconciler.model.entity import Entity


def client(pattern: Poisson | Bursts | Timer, *, size: int = 2_000, acks: int = 1) -> Client:
    return Client(user="orders", client_id="app", kind="produce", pattern=pattern, size=size, acks=acks)


def test_the_same_seed_gives_the_same_arrivals_and_another_one_others():
    first = arrivals(MIXED.clients, seconds=20, brokers=3)

    assert first == arrivals(MIXED.clients, seconds=20, brokers=3)
    assert first != arrivals(MIXED.clients, seconds=20, brokers=3, seed=2)


def test_numbers_count_up_in_the_order_of_time():
    found = arrivals(MIXED.clients, seconds=20, brokers=3)

    assert [one.number for one in found] == list(range(1, len(found) + 1))
    assert [one.at_s for one in found] == sorted(one.at_s for one in found)
    assert found[0].at_s >= 0
    assert found[-1].at_s < 20
    assert {one.broker for one in found} == {0, 1, 2}


def test_a_client_more_leaves_the_others_where_they_were():
    steady, more = client(Poisson(rate=5)), client(Timer(period_s=1))

    alone = arrivals([steady], seconds=30)
    beside = [one for one in arrivals([steady, more], seconds=30) if one.client == steady]

    assert [(one.at_s, one.size) for one in beside] == [(one.at_s, one.size) for one in alone]


def test_a_timer_keeps_its_period_and_its_size():
    found = arrivals([client(Timer(period_s=0.5), size=3_000)], seconds=10)

    assert len(found) == 20
    assert {one.size for one in found} == {3_000}
    assert all(abs(later.at_s - earlier.at_s - 0.5) < 1e-9 for earlier, later in itertools.pairwise(found))


def test_bursts_are_silent_between():
    found = arrivals([client(Bursts(every_s=10, length_s=2, rate=50))], seconds=60)

    start = found[0].at_s
    assert {int((one.at_s - start) // 10) for one in found} == {0, 1, 2, 3, 4, 5}
    assert all((one.at_s - start) % 10 <= 2 or (one.at_s - start) % 10 > 9.5 for one in found)


def test_a_poisson_client_has_about_its_rate_and_its_mean_size():
    found = arrivals([client(Poisson(rate=20), size=4_000)], seconds=500)

    assert 9_500 < len(found) < 10_500
    assert 3_700 < sum(one.size for one in found) / len(found) < 4_300


@pytest.mark.parametrize("size", [1, 200, 999, 54_321])
def test_sizes_are_rounded_by_a_tenth_to_a_few(size):
    found = rounded(size, most=1_000_000)

    assert found == rounded(found, most=1_000_000)
    assert found == SMALLEST or abs(found / size - 1) < 0.1


def test_a_rehearsal_throttles_what_is_over_and_nothing_else():
    quotas = {Entity.of({"user": "orders"}): {"producer_byte_rate": 1_000.0}}
    one = client(Poisson(rate=1))
    plan = [Arrival(number=n, at_s=float(n), client=one, broker=0, size=9_900) for n in (1, 2)]

    # 10,000 bytes with their headers are just what a window of ten seconds holds; as many again are ten seconds too much.
    assert planned_throttles(plan, quotas) == [0, 10_000]
    assert planned_throttles(plan, {}) == [0, 0]


def test_a_rehearsed_fetch_leaves_no_debt():
    quotas = {Entity.of({"user": "orders"}): {"consumer_byte_rate": 1_000.0}}
    one = Client(user="orders", client_id="app", kind="fetch", pattern=Poisson(rate=1), size=9_000)
    plan = [Arrival(number=n, at_s=n / 10, client=one, broker=0, size=9_000) for n in (1, 2, 3)]

    first, second, third = planned_throttles(plan, quotas)

    assert first == 0
    assert third == pytest.approx(second, abs=101)


def test_connections_are_enough_for_what_is_muted_at_once():
    one = client(Poisson(rate=1))
    plan = [Arrival(number=n, at_s=float(n), client=one, broker=0, size=1_000) for n in range(10)]

    at_ease = connections_needed(plan, [0] * 10)[0, "orders"]
    muted = connections_needed(plan, [60_000] * 10)[0, "orders"]

    assert at_ease < 10 < muted


def test_without_acknowledgement_every_request_has_its_own_connection():
    one = client(Poisson(rate=1), acks=0)
    plan = [Arrival(number=n, at_s=float(n), client=one, broker=0, size=1_000) for n in range(40)]

    assert connections_needed(plan, [0] * 40)[0, "orders"] >= 40


def test_a_batch_has_nearly_the_size_that_was_asked_for_and_is_made_once():
    assert all(abs(len(frames.batch(size)) - size) <= 8 for size in (200, 1_000, 50_000))
    assert frames.batch(1_000) is frames.batch(1_000)


def test_a_produce_frame_says_what_it_must():
    frame = frames.produce("t", 2, frames.batch(500), number=77, client_id="app", acks=-1)

    assert struct.unpack_from(">ihhi", frame) == (len(frame) - 4, 0, 9, 77)
    body = io.BytesIO(frame[4:])
    ProduceRequest[9].parse_header(body)
    request = ProduceRequest[9].decode(body)
    assert (request.acks, request.topic_data[0].partition_data[0].index) == (-1, 2)


def test_a_fetch_frame_asks_for_just_so_much():
    frame = frames.fetch("t", 1, 12_345, number=78, client_id="app")

    body = io.BytesIO(frame[4:])
    assert FetchRequest[12].parse_header(body).correlation_id == 78
    request = FetchRequest[12].decode(body)
    assert request.topics[0].partitions[0].partition_max_bytes == 12_345


def test_the_throttle_is_read_from_both_kinds_of_answers():
    row = ProduceResponse.TopicProduceResponse
    part = row.PartitionProduceResponse(
        index=0, error_code=6, base_offset=5, log_append_time_ms=-1, log_start_offset=0, record_errors=[], error_message=None
    )
    produced = ProduceResponse[9](responses=[row(name="some-topic", partition_responses=[part])], throttle_time_ms=4_321)
    fetched = FetchResponse[12](throttle_time_ms=1_234, error_code=0, session_id=0, responses=[])
    head = struct.pack(">ib", 99, 0)

    assert frames.throttle_of(head + produced.encode(), of_fetch=False) == 4_321
    assert frames.throttle_of(head + fetched.encode(), of_fetch=True) == 1_234
    assert frames.number_of(head + fetched.encode()) == 99
    assert frames.produce_error(head + produced.encode()) == 6


@pytest.mark.parametrize("scenario", [MIXED, REQUEST_TIME], ids=lambda one: one.name)
def test_a_scenario_has_clients_over_their_limits_and_below(scenario):
    plan = arrivals(scenario.clients, seconds=60)

    assert 2_000 < len(plan) < 15_000
    if scenario is MIXED:
        throttled = {one.client.client_id for one, ms in zip(plan, planned_throttles(plan, scenario.quotas), strict=True) if ms}
        assert {"orders-batch", "billing-metrics", "reports-export", "mirror-huge"} <= throttled
        assert not throttled & {"billing-small", "mirror-small", "ledger-view"}


def test_several_brokers_share_the_limits_in_whole_numbers():
    shared = MIXED.quotas_on(3)

    assert MIXED.quotas_on(1) == MIXED.quotas
    assert all(value.is_integer() for values in shared.values() for value in values.values())
    whole = MIXED.quotas[Entity.of({"user": "orders"})]["producer_byte_rate"]
    assert shared[Entity.of({"user": "orders"})]["producer_byte_rate"] == whole / 3
