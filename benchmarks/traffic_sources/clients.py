"""Who sends what in a real run: clients that are steady, bursty, or swing as days do. The limits of some throttle them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from benchmarks.fidelity.arrivals import SMALLEST, Arrival, Client, Poisson, rounded
from benchmarks.fidelity.scenarios import Quotas
from reconciler.model.entity import DEFAULT, Entity

Shape: TypeAlias = Literal["steady", "bursty", "diurnal"]
SHAPES: Final[tuple[Shape, ...]] = ("steady", "bursty", "diurnal")

WIDE: Final = 1e12
"""A limit that makes traffic visible and throttles none of it."""
_USERS_OF_A_SHAPE: Final = 4
_CLIENTS_OF_A_USER: Final = 4
_FETCHES: Final = 4
"""One client of so many fetches."""
_LARGEST: Final = 16
"""No request has more than so many times the mean of its client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A client and its intensity: requests a second at a time, never above ``most``."""

    client: Client
    shape: Shape
    intensity: Callable[[float], float]
    most: float
    limit: float | None
    """Bytes a second that throttle it; ``None``: its limit is ``WIDE``."""


def senders(seed: int) -> list[Sender]:
    """Those of one run. Users named ``limited-`` have limits."""
    return [*_of_limit(seed, limited=False), *_of_limit(seed, limited=True)]


def quotas(some: list[Sender]) -> Quotas:
    """Each client is a quota group of its own, on both kinds."""
    found: dict[Entity, dict[str, float]] = {
        Entity.of({"user": DEFAULT, "client-id": DEFAULT}): {"producer_byte_rate": WIDE, "consumer_byte_rate": WIDE}
    }
    for one in some:
        if one.limit is not None:
            key = "producer_byte_rate" if one.client.kind == "produce" else "consumer_byte_rate"
            found[Entity.of({"user": one.client.user, "client-id": one.client.client_id})] = {key: one.limit}
    return found


def arrivals(some: list[Sender], *, seconds: float, seed: int) -> list[Arrival]:
    """Everything that all of them send, in the order of time."""
    drawn = []
    for place, sender in enumerate(some):
        chance = random.Random(f"{seed} {place} arrivals")
        drawn += [(at_s, place, _size(sender.client, chance)) for at_s in _moments(sender, seconds, chance)]
    drawn.sort()
    return [
        Arrival(number=number, at_s=at_s, client=some[place].client, broker=0, size=size)
        for number, (at_s, place, size) in enumerate(drawn, start=1)
    ]


def _of_limit(seed: int, *, limited: bool) -> Iterator[Sender]:
    chance = random.Random(f"{seed} {limited} senders")
    for shape in SHAPES:
        for user in range(1 if limited else _USERS_OF_A_SHAPE):
            for number in range(_CLIENTS_OF_A_USER):
                yield _sender(shape, user, number, chance, limited=limited)


def _sender(shape: Shape, user: int, number: int, chance: random.Random, *, limited: bool) -> Sender:
    rate = math.exp(chance.uniform(math.log(0.5), math.log(4.0)))
    size = int(math.exp(chance.uniform(math.log(600), math.log(6000))))
    client = Client(
        user=f"{'limited-' if limited else ''}{shape}-{user}",
        client_id=f"{shape}-{user}-{number}",
        kind="fetch" if number % _FETCHES == _FETCHES - 1 else "produce",
        pattern=Poisson(rate=rate),
        size=size,
    )
    intensity, most = _intensity(shape, rate, chance)
    # Above the mean, and below what its bursts reach.
    limit = float(round(rate * size * chance.uniform(1.1, 1.8))) if limited else None
    return Sender(client=client, shape=shape, intensity=intensity, most=most, limit=limit)


def _intensity(shape: Shape, rate: float, chance: random.Random) -> tuple[Callable[[float], float], float]:
    """With ``rate`` as its mean, about."""
    if shape == "steady":
        return (lambda _: rate), rate
    if shape == "diurnal":
        period_s, start = chance.uniform(240, 900), chance.uniform(0, 2 * math.pi)
        return (lambda at_s: rate * (1 + 0.9 * math.sin(2 * math.pi * at_s / period_s + start))), 1.9 * rate
    every_s, length_s, quiet = chance.uniform(20, 180), chance.uniform(1, 8), 0.2
    high = rate * (quiet + (1 - quiet) * every_s / length_s)
    begins = []
    at_s = chance.uniform(0, every_s)
    while at_s < 3600:
        begins.append(at_s)
        at_s += chance.expovariate(1 / every_s) + length_s

    def bursts(at_s: float) -> float:
        return high if any(begin <= at_s < begin + length_s for begin in begins) else quiet * rate

    return bursts, high


def _moments(sender: Sender, seconds: float, chance: random.Random) -> Iterator[float]:
    """A Poisson process of a rate that changes, by thinning."""
    at_s = chance.expovariate(sender.most)
    while at_s < seconds:
        if chance.random() * sender.most < sender.intensity(at_s):
            yield at_s
        at_s += chance.expovariate(sender.most)


def _size(client: Client, chance: random.Random) -> int:
    return rounded(SMALLEST + chance.expovariate(1 / max(client.size - SMALLEST, 1)), most=_LARGEST * client.size)
