"""Backtest reports made by hand."""

from __future__ import annotations

import datetime
from typing import Any

from reconciler.model.backtest import (
    BacktestReport,
    BucketVerdict,
    Coverage,
    Form,
    Member,
    Provenance,
    RateSeries,
    Verdict,
)
from reconciler.model.entity import Entity

START = datetime.datetime(2026, 11, 20, 8, 0, tzinfo=datetime.UTC)
END = START + datetime.timedelta(hours=8)


def member(user: str | None, client_id: str | None = "app", *, share: float = 0.5) -> Member:
    return Member(user=user, client_id=client_id, share=share, requests=10, limit_before=300_000.0)


def verdict(**given: Any) -> BucketVerdict:
    """One bucket; what is not given is of a user that is well below its limit."""
    user = given.get("user", "alice")
    fields: dict[str, Any] = {
        "user": user, "client_id": "", "key": "producer_byte_rate", "broker": 1, "entity": Entity.of({"user": user or "x"}),
        "limit_before": 300_000.0, "limits_before": (300_000.0,), "limit_after": 100_000.0, "changed": True,
        "verdict": Verdict.CLEAR, "requests": 1000, "throttled_before": None, "throttled": None, "active_seconds": 4000,
        "seconds_certain": 0, "seconds_over": 0, "seconds_possible": 0, "seconds_over_before": 0, "first": None, "longest_s": 0,
        "longest_from": None, "peak": 50_000.0, "p999": 45_000.0, "recommended": 75_000.0, "recommended_reason": "it is safe",
        "members": (member(user),),
    }  # fmt: skip
    return BucketVerdict(**fields | given)


def rates(count: int = 240, *, step_s: int = 120) -> RateSeries:
    over = tuple(step_s if n % 40 < 3 else 0 for n in range(count))
    return RateSeries(
        start=START,
        step_s=step_s,
        rate=tuple(200_000.0 if o else 30_000.0 + 100 * n for n, o in enumerate(over)),
        upper=tuple(220_000.0 if o else 33_000.0 + 100 * n for n, o in enumerate(over)),
        over=over,
        possible=tuple(step_s if n % 40 < 5 else 0 for n in range(count)),
        over_before=(0,) * count,
        recorded=(True,) * count,
    )


def provenance(**given: Any) -> Provenance:
    fields: dict[str, Any] = {
        "source": "normal-form", "form": Form.SECONDS, "files": ("t.parquet",), "semantics": "Kafka 3.8 and newer",
        "start": START, "end": END, "coverage": (Coverage(broker=1, requests=1000, start=START, end=END, minutes=480),),
        "requests": 1000, "series": 3, "censored": 0, "throttled_then": 0, "assumptions": ("brokers are brokers",),
    }  # fmt: skip
    return Provenance(**fields | given)


def report_of(*verdicts: BucketVerdict, **given: Any) -> BacktestReport:
    fields: dict[str, Any] = {"provenance": provenance(), "verdicts": verdicts, "cluster": "prod-eu"}
    return BacktestReport(**fields | given)
