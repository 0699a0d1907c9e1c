"""Free loopback ports."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

from reconciler.errors import SandboxError

LOOPBACK: Final = "127.0.0.1"
PORT_RANGE: Final = range(20000, 32000)
"""Below what Linux and macOS hand to outgoing connections, so that nothing takes a port between our look and the broker's bind
but another server that picks one here."""


def free_ports(count: int) -> tuple[int, ...]:
    """``count`` different ports nobody listens on now; another process may still take one before it is used.

    Raises ``SandboxError`` when there are not that many.
    """
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.sample(PORT_RANGE, len(PORT_RANGE)):
            if len(found) == count:
                break
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            with contextlib.suppress(OSError):
                probe.bind((LOOPBACK, port))
                found.append(port)
    if len(found) < count:
        raise SandboxError(f"no {count} free ports on {LOOPBACK} between {PORT_RANGE.start} and {PORT_RANGE.stop - 1}")
    return tuple(found)
