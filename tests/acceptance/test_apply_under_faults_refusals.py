"""Refusals by a real broker amid an apply, and answers that are cut, late, torn or garbled after it has done the work."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.bad_servers import serving
from tests.support.change_set import LARGE, ChangeSet, mixed
from tests.support.write_proxy import Last, WriteProxy, decoded_alter, reencoded

pytestmark = pytest.mark.kafka

MOST_RECORDS = 10_000

"""Kafka's limit for one request: a record is a changed key."""


@pytest.fixture
def work(tmp_path: Path, clean_kafka: Sandbox) -> ChangeSet:
    before, wanted = mixed()
    return ChangeSet(tmp_path, clean_kafka.bootstrap_servers, before=before, wanted=wanted)


def changing(number: int, change: Callable[[Any], None]) -> Callable[[int, bytes], bytes]:
    """A request on its way to the broker, with something in it changed: what the broker then says of it is its own word."""

    def request(now: int, frame: bytes) -> bytes:
        if now != number:
            return frame
        message = decoded_alter(frame)
        change(message)
        return reencoded(message)

    return request


def with_zero_for_one(message: Any) -> None:
    message.entries[7].ops[0].value = 0.0


def with_too_many_records(message: Any) -> None:
    row = type(message.entries[0])
    part, op = type(message.entries[0].entity[0]), type(message.entries[0].ops[0])
    message.entries += [
        row(
            entity=[part(entity_type="user", entity_name=f"too many {n}")],
            ops=[op(key="producer_byte_rate", value=1e6, remove=False)],
        )
        for n in range(MOST_RECORDS)
    ]


def test_one_entity_is_refused_and_the_others_of_its_request_are_not(tmp_path: Path, clean_kafka: Sandbox) -> None:
    before, wanted = mixed(letters=LARGE)
    work = ChangeSet(tmp_path, clean_kafka.bootstrap_servers, before=before, wanted=wanted, whole_requests=True)
    proxy = WriteProxy(clean_kafka.nodes[0].port, request=changing(2, with_zero_for_one))
    with serving(proxy) as server:
        stopped = work.run(server)
    assert stopped.code == 4, stopped.err
    report = stopped.json()
    assert (report["result"], report["failure_reason"]) == ("partial", "refused-by-cluster")
    first, second = proxy.writes
    assert report["summary"] == {
        "applied": len(first) + len(second) - 1,
        "failed": 1,
        "unknown": 0,
        "not_attempted": len(work.wanted) - len(first) - len(second),
    }
    (failed,) = (change for change in report["changes"] if change["status"] == "failed")
    assert failed["error_code"] == 42
    assert failed["error"].endswith("must be greater than 0")
    work.require_true(report)
    work.finish()


@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.large), 2])
def test_a_request_refused_whole_changes_nothing_and_stops_the_run(work: ChangeSet, clean_kafka: Sandbox, number: int) -> None:
    proxy = WriteProxy(clean_kafka.nodes[0].port, request=changing(number, with_too_many_records))
    with serving(proxy) as server:
        stopped = work.run(server)
    assert stopped.code == (1 if number == 1 else 4), stopped.err
    assert "error 44" in stopped.err
    report = stopped.json()
    assert (report["result"], report["failure_reason"]) == ("failed" if number == 1 else "partial", "refused-by-cluster")
    assert len(proxy.writes) == number
    if number == 1:
        work.require_untouched()
    else:
        assert report["summary"]["applied"] == len(proxy.writes[0])
        refused = [change for change in report["changes"] if change["status"] == "failed"]
        assert len(refused) == len(proxy.writes[1])
        assert all("error 44" in change["error"] for change in refused)
        work.require_true(report)
    work.finish()


Garble = Callable[[bytes], bytes]

"""What becomes of an answer, given with its length."""


def with_codes(code: int, *, every: bool) -> Garble:
    """The answer with another error code in each of its entries, or in one."""

    def garble(frame: bytes) -> bytes:
        from kafka.protocol.admin import AlterClientQuotasResponse

        answer: Any = AlterClientQuotasResponse.decode(frame, version=1, header=True, framed=True)
        for entry in answer.entries if every else answer.entries[:1]:
            entry.error_code, entry.error_message = code, "said by nobody"
        return bytes(answer.encode(header=True, framed=True))

    return garble


def with_correlation_id(change: int) -> Garble:
    return lambda frame: frame[:4] + struct.pack(">i", struct.unpack_from(">i", frame, 4)[0] + change) + frame[8:]


FAULTS: dict[str, Garble] = {
    "hung up before the answer": lambda _: Last(),
    "cut in its middle": lambda frame: Last(frame[: len(frame) // 2]),
    "cut before its last byte": lambda frame: Last(frame[:-1]),
    "a negative length": lambda frame: b"\xff" + frame[1:],
    "an enormous length": lambda frame: b"\x7f" + frame[1:],
    "the answer to another request": with_correlation_id(7),
    "no entity at all": lambda frame: struct.pack(">i", 11) + frame[4:13] + b"\x01\x00",
    "an entity nobody asked about": lambda frame: frame.replace(b"-looser", b"-Looser", 1).replace(b"-tighter", b"-Tighter", 1),
    "garbage": lambda frame: frame[:9] + bytes(range(256)) * (len(frame) // 256 + 1),
    "error 7 for all": with_codes(7, every=True),
    "error 7 for one": with_codes(7, every=False),
    "error -1 for all": with_codes(-1, every=True),
}


def test_what_was_done_is_found_out_and_the_run_goes_on(tmp_path: Path, clean_kafka: Sandbox) -> None:
    """One run, and each request's answer is broken in another way."""
    before, wanted = mixed(requests=len(FAULTS))
    work = ChangeSet(tmp_path, clean_kafka.bootstrap_servers, before=before, wanted=wanted)
    faults = dict(enumerate(FAULTS.values(), start=1))
    port = clean_kafka.nodes[0].port
    proxy = WriteProxy(port, answer=lambda number, frame: faults.pop(number)(frame) if number in faults else frame)
    with serving(proxy) as server:
        done = work.run(server)
    assert done.code == 0, done.err
    assert faults == {}
    report = done.json()
    assert report["summary"]["applied"] == len(work.wanted)
    work.require_true(report)
    work.finish()
