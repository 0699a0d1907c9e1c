"""When scripted clients send, and how much: the same list for every run, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """So many requests a second on average, each whenever it likes."""

    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """Silent but for ``length_s`` in every ``every_s``, when it is ``Poisson(rate)``."""

    every_s: float
    length_s: float
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One request in every period, on the dot."""

    period_s: float


Pattern: TypeAlias = Poisson | Bursts | Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One scripted client. ``size`` is the mean of its record bytes; timers always send the same."""

    user: str
    client_id: str
    kind: Literal["produce", "fetch"]
    pattern: Pattern
    size: int
    acks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request: ``number`` is its correlation id, ``at_s`` when it is sent after the start, ``broker`` counts from 0."""

    number: int
    at_s: float
    client: Client
    broker: int
    size: int


SMALLEST = 200
"""Bytes of records."""
_STEPS_A_DOUBLING = 4


def arrivals(clients: Sequence[Client], *, seconds: float, brokers: int = 1, seed: int = 1) -> list[Arrival]:
    """Everything that all clients send, in the order of time."""
    drawn = []
    for place, client in enumerate(clients):
        chance = random.Random(f"{seed} {place} {client.user} {client.client_id}")
        times = moments(client.pattern, seconds, chance)
        drawn += [(at_s, place, client, chance.randrange(brokers), _size(client, chance)) for at_s in times]
    drawn.sort(key=lambda one: one[:2])
    return [
        Arrival(number=number, at_s=at_s, client=client, broker=broker, size=size)
        for number, (at_s, _, client, broker, size) in enumerate(drawn, start=1)
    ]


def moments(pattern: Pattern, seconds: float, chance: random.Random) -> Iterator[float]:
    """Seconds after the start, in order, all below ``seconds``."""
    match pattern:
        case Poisson(rate=rate):
            yield from _poisson(0.0, seconds, rate, chance)
        case Bursts(every_s=every_s, length_s=length_s, rate=rate):
            start = chance.uniform(0.0, every_s / 2)
            while start < seconds:
                yield from _poisson(start, min(start + length_s, seconds), rate, chance)
                start += every_s
        case Timer(period_s=period_s):
            at_s = chance.uniform(0.0, period_s)
            while at_s < seconds:
                yield at_s
                at_s += period_s


def _poisson(start: float, end: float, rate: float, chance: random.Random) -> Iterator[float]:
    at_s = start + chance.expovariate(rate)
    while at_s < end:
        yield at_s
        at_s += chance.expovariate(rate)


def _size(client: Client, chance: random.Random) -> int:
    if isinstance(client.pattern, Timer):
        return client.size
    return rounded(SMALLEST + chance.expovariate(1 / max(client.size - SMALLEST, 1)), most=8 * client.size)


def rounded(size: float, *, most: int) -> int:
    """One of a few sizes near it: making a batch of records costs more than sending it, so batches are used again."""
    value = SMALLEST
    factor = 2 ** (1 / _STEPS_A_DOUBLING)
    while value * factor**0.5 < min(size, most):
        value = round(value * factor)
    return value
