"""Choosing ports."""

from __future__ import annotations

import contextlib
import socket

from reconciler.features.sandbox.configuration import LOOPBACK, PORT_RANGE, free_ports


def test_chosen_ports_differ_and_can_all_be_bound() -> None:
    ports = free_ports(9)
    assert len(set(ports)) == 9
    with contextlib.ExitStack() as stack:
        for port in ports:
            stack.enter_context(socket.create_server((LOOPBACK, port)))


def test_ports_are_below_those_of_outgoing_connections() -> None:
    assert all(port in PORT_RANGE for port in free_ports(3))
    assert PORT_RANGE.stop <= 32768
