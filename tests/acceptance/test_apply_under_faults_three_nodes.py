"""Three nodes, and one of them dies, is gone from the start, or stands still during an apply."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.bad_servers import serving
from tests.support.change_set import ChangeSet, mixed
from tests.support.command import Done
from tests.support.polling import wait_until
from tests.support.three_nodes import ThreeNodes
from tests.support.write_proxy import WriteProxy

pytestmark = pytest.mark.kafka

PART_OF_A_REQUEST = 20_000
"""Bytes; nothing else that nodes send one another is so large here, and a socket that nobody reads takes more."""


@pytest.fixture
def work(tmp_path: Path, nodes: ThreeNodes) -> ChangeSet:
    before, wanted = mixed()
    return ChangeSet(tmp_path, nodes.servers(), before=before, wanted=wanted)


def apply_through(
    work: ChangeSet, nodes: ThreeNodes, home: int, *, before: Callable[[], None], after: Callable[[], None] = lambda: None
) -> Done:
    """Apply by way of one node, which tells of the others; things happen before and after it is passed the second write."""
    later = threading.Thread(target=after)

    def request(number: int, frame: bytes) -> bytes:
        if number == 2:
            before()
            later.start()
        return frame

    with serving(WriteProxy(nodes.ports[home], request=request)) as port:
        done = work.run(port)
    assert later.ident is not None, f"it ended before its second write: {done.err}"
    later.join()
    return done


def require_done(work: ChangeSet, nodes: ThreeNodes, done: Done) -> None:
    """All is applied, the report is true, all three nodes agree in the end, and nothing is left to do."""
    assert done.code == 0, done.err
    work.servers, work.brokers = nodes.servers(), nodes.up
    report = done.json()
    assert report["summary"]["applied"] == len(work.wanted)
    work.require_true(report)
    nodes.mend()
    work.servers, work.brokers = nodes.servers(), nodes.up
    work.require_true(report)
    work.finish()


class Standstill:
    """Stops the active controller of the moment, whichever node that is by then: slow machines elect another one now and then."""

    def __init__(self, nodes: ThreeNodes) -> None:
        self._nodes = nodes
        self.node = 0

    def begin(self) -> None:
        self.node = self._nodes.active_controller()
        self._nodes.stop(self.node)

    def await_a_request(self) -> None:
        """Until it holds part of one that it has not read, or the others do without it."""
        wait_until(lambda: self._nodes.bytes_waiting(self.node) > PART_OF_A_REQUEST or self._nodes.leader() != self.node)


def test_the_active_controller_is_killed_with_a_request_in_its_hands(work: ChangeSet, nodes: ThreeNodes) -> None:
    home = min(nodes.ports.keys() - {nodes.active_controller()})
    standstill = Standstill(nodes)

    def kill() -> None:
        standstill.await_a_request()
        nodes.kill(standstill.node)

    done = apply_through(work, nodes, home, before=standstill.begin, after=kill)
    require_done(work, nodes, done)


def test_the_broker_that_is_asked_stands_still_until_the_others_have_given_it_up(work: ChangeSet, nodes: ThreeNodes) -> None:
    home = min(nodes.ports.keys() - {nodes.active_controller()})

    def go_on() -> None:
        wait_until(lambda: home not in nodes.listed())
        nodes.go_on(home)

    done = apply_through(work, nodes, home, before=lambda: nodes.stop(home), after=go_on)
    require_done(work, nodes, done)
