"""The number of a client (its requests of one kind on one broker) in a file of per-second totals.

The upper half comes from the user alone, so that a file that is sorted by numbers has the clients of a user together. Each half
has 32 bits, and names are the clients' own, so two clients can have one number: the second one gets another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

_HALF_BYTES: Final = 4
_HALF: Final = 1 << 8 * _HALF_BYTES


class Client(NamedTuple):
    """As ``IDENTITY``: ``None`` is a name that is not known."""

    broker: int
    kind: str
    user: str | None
    client_id: str | None

    @property
    def sort_key(self) -> tuple[int, str, bool, str, bool, str]:
        """By broker, kind, user and client-id; a name that is not known comes first."""
        return self.broker, self.kind, self.user is not None, self.user or "", self.client_id is not None, self.client_id or ""


def client_number(client: Client) -> int:
    """64 bits with a sign, the same in every file unless another client has them there."""
    halves = _digest(repr(client.user)), _digest(repr((client.broker, client.kind, client.client_id)))
    return int.from_bytes(b"".join(halves), "big", signed=True)


def number_clients(clients: Sequence[Client], number: Callable[[Client], int] = client_number) -> list[int]:
    """A number for each of these different clients, no two the same, whatever order they are in.

    Of clients with one number the first by ``sort_key`` keeps it, and the others get the next free lower halves.
    """
    wanted = [number(client) for client in clients]
    taken = set(wanted)
    if len(taken) == len(wanted):
        return wanted
    given: dict[int, int] = {}
    kept: set[int] = set()
    for place in sorted(range(len(clients)), key=lambda place: clients[place].sort_key):
        found = wanted[place]
        if found in kept:
            while found in taken:
                found = found - found % _HALF + (found + 1) % _HALF
            taken.add(found)
        kept.add(found)
        given[place] = found
    return [given[place] for place in range(len(clients))]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HALF_BYTES).digest()
