"""Answers that are cut, late, torn or garbled after the broker has done the work: it is looked up, told truly, and finished."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support.bad_servers import serving
from tests.support.change_set import ChangeSet, mixed
from tests.support.write_proxy import Last, WriteProxy

pytestmark = pytest.mark.kafka

Garble = Callable[[bytes], bytes]
"""What becomes of an answer, given with its length."""


@pytest.fixture
def port(clean_kafka: Sandbox) -> int:
    return clean_kafka.nodes[0].port


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


def test_what_was_done_is_found_out_and_the_run_goes_on(tmp_path: Path, clean_kafka: Sandbox, port: int) -> None:
    """One run, and each request's answer is broken in another way."""
    before, wanted = mixed(requests=len(FAULTS))
    work = ChangeSet(tmp_path, clean_kafka.bootstrap_servers, before=before, wanted=wanted)
    faults = dict(enumerate(FAULTS.values(), start=1))
    proxy = WriteProxy(port, answer=lambda number, frame: faults.pop(number)(frame) if number in faults else frame)
    with serving(proxy) as server:
        done = work.run(server)
    assert done.code == 0, done.err
    assert faults == {}
    report = done.json()
    assert report["summary"]["applied"] == len(work.wanted)
    work.require_true(report)
    work.finish()
