"""Loopback ports: free ones, and those of a sandbox."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.errors import SandboxError
from reconciler.features.sandbox.spec import SandboxSpec

LOOPBACK: Final = "127.0.0.1"
PORT_RANGE: Final = range(20000, 32000)
"""Below what Linux and macOS hand to outgoing connections, so that nothing takes a port between our look and the broker's bind
but another server that picks one here."""


def free_ports(count: int) -> tuple[int, ...]:
    """``count`` different ports without a listener now; another process may still take one before it is used.

    Raises ``SandboxError`` when there are not that many.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.sample(PORT_RANGE, len(PORT_RANGE)):
            if len(ports) == count:
                break
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            with contextlib.suppress(OSError):
                probe.bind((LOOPBACK, port))
                ports.append(port)
    if len(ports) < count:
        raise SandboxError(f"no {count} free ports on {LOOPBACK} between {PORT_RANGE.start} and {PORT_RANGE.stop - 1}")
    return tuple(ports)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """The loopback ports of one node; ``sasl`` only where there are users, ``further`` by the name of the listener.

    A node has either a ``controller`` of its own or a ZooKeeper.
    """

    plaintext: int
    controller: int | None
    sasl: int | None
    further: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of a sandbox; ``zookeeper`` is ``None`` in KRaft mode."""

    nodes: tuple[NodePorts, ...]
    zookeeper: int | None


def assign_ports(spec: SandboxSpec, choose_ports: Callable[[int], Sequence[int]]) -> Ports:
    """A port for each listener of ``spec``, of those that ``choose_ports`` finds. Raises ``SandboxError``."""
    free = iter(choose_ports((3 + len(spec.listeners)) * spec.nodes + 1))
    return Ports(
        nodes=tuple(
            NodePorts(
                plaintext=next(free),
                controller=None if spec.zookeeper else next(free),
                sasl=next(free) if spec.users else None,
                further={listener.name: next(free) for listener in spec.listeners},
            )
            for _ in range(spec.nodes)
        ),
        zookeeper=next(free) if spec.zookeeper else None,
    )
