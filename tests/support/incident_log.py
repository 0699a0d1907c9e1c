"""A request log of clients that a broker throttles: the throttles are those of Kafka's own sampled rate."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, SampledRate, throttle_ms
from tests.traffic.log_lines import line, produce_request

START = datetime.datetime(2026, 11, 21, 13, 0, 0, tzinfo=datetime.UTC)
_OVERHEAD = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A client that sends ``size`` bytes every ``every_s``, from ``begin_s`` to ``end_s`` after ``START``."""

    user: str
    client_id: str
    size: int
    every_s: float
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One line: when it was charged, and for how long it was throttled."""

    at: datetime.datetime
    client_id: str
    throttle_ms: int


def write_log(path: Path, senders: Sequence[Sender], limits: Mapping[str, float]) -> list[SentRequest]:
    """A log of one broker. ``limits``: produced bytes a second, by user."""
    plan = sorted(
        (sender.begin_s + number * sender.every_s, order, sender)
        for order, sender in enumerate(senders)
        for number in range(int((sender.end_s - sender.begin_s) / sender.every_s))
    )
    rates: dict[str, SampledRate] = defaultdict(lambda: SampledRate(DEFAULT_WINDOW))
    sent, lines = [], []
    for number, (at_s, order, sender) in enumerate(plan):
        throttle, moment = 0, START + datetime.timedelta(seconds=at_s)
        if sender.user in limits:
            now_ms = int(moment.timestamp() * 1000)
            rates[sender.user].record(sender.size + _OVERHEAD, now_ms)
            throttle = max(0, throttle_ms(*rates[sender.user].measure(now_ms), limits[sender.user]))
        sent.append(SentRequest(at=moment, client_id=sender.client_id, throttle_ms=throttle))
        lines.append(
            line(
                client_id=sender.client_id,
                principal=f"User:{sender.user}",
                request=produce_request(sender.size),
                at=f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}",
                connection=f"10.0.0.5:9092-10.0.0.9:{50_000 + order}-2-0",
                correlation_id=number,
                throttle_ms=throttle,
            )
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sent
