"""Backtest reports made by hand."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any, Final

from reconciler.model import (
    Advice,
    BacktestReport,
    BucketName,
    BucketVerdict,
    Coverage,
    FailedBucket,
    Form,
    Member,
    PeakRate,
    Provenance,
    RateSeries,
    RecordedGroup,
    RowLimits,
    RuleOutcome,
    SecondsOver,
    UnreadableLines,
    Verdict,
)
from reconciler.model.backtest import NotJudged, UnusedQuota
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Finding, Severity, Span

START = datetime.datetime(2026, 11, 20, 8, 0, tzinfo=datetime.UTC)
_ALICE, _ANYONE = Entity.of({"user": "alice"}), Entity.of({"user": DEFAULT})
END = START + datetime.timedelta(hours=8)


def member(user: str | None, client_id: str | None = "app", *, share: float = 0.5) -> Member:
    return Member(user=user, client_id=client_id, share=share, requests=10, limit_before=300_000.0)


_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "user": ("name", "user"), "client_id": ("name", "client_id"), "tags": ("name", "other"),
    "entity": ("limits", "entity"), "limits_before": ("limits", "before"), "limit_after": ("limits", "after"),
    "entities_before": ("limits", "entities_before"),
    "buckets_before": ("limits", "buckets_before"),
    "requests": ("recorded", "requests"), "members": ("recorded", "members"), "throttled_then": ("recorded", "throttled"),
    "uncharged": ("recorded", "uncharged"), "censored": ("recorded", "censored"),
    "active_seconds": ("over", "active"), "seconds_certain": ("over", "certain"), "seconds_over": ("over", "seconds"),
    "seconds_possible": ("over", "possible"), "seconds_over_before": ("over", "before"), "first": ("over", "first"),
    "longest_s": ("over", "longest_s"), "longest_from": ("over", "longest_from"),
    "peak": ("peak", "rate"), "peak_bound": ("peak", "bound"), "least_safe": ("peak", "enough"),
    "recommended": ("advice", "recommended"), "recommended_reason": ("advice", "reason"), "safe": ("advice", "safe"),
    "margin": ("advice", "margin"),
}  # fmt: skip
"""Names of the tests for fields of a row's parts."""
_PLAIN: Final = BucketVerdict(
    key="producer_byte_rate",
    broker=1,
    name=BucketName(user="alice", client_id=""),
    limits=RowLimits(entity=None, before=(300_000.0,), after=100_000.0),
    changed=True,
    verdict=Verdict.CLEAR,
    recorded=RecordedGroup(requests=1000),
    over=SecondsOver(active=4000, before=0),
    peak=PeakRate(rate=50_000.0),
    advice=Advice(recommended=75_000.0, reason="it is safe"),
)


def altered(row: BucketVerdict, **given: Any) -> BucketVerdict:
    """The row with other fields of its own, or of its parts by the names of ``_PARTS``."""
    own: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _PARTS:
            own[name] = value
            continue
        part, field = _PARTS[name]
        whole = own.get(part, getattr(row, part))
        own[part] = whole._replace(**{field: value}) if part == "name" else dataclasses.replace(whole, **{field: value})
    return dataclasses.replace(row, **own)


def verdict(**given: Any) -> BucketVerdict:
    """One bucket; what is not given is of a user that is well below its limit."""
    user = given.get("user", "alice")
    return altered(_PLAIN, **{"entity": Entity.of({"user": user or "x"}), "members": (member(user),)} | given)


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


def provenance(*, end: datetime.datetime = END, **given: Any) -> Provenance:
    fields: dict[str, Any] = {
        "source": "normal-form", "form": Form.SECONDS, "files": ("t.parquet",), "semantics": "Kafka 3.8 and newer",
        "coverage": (Coverage(broker=1, requests=1000, start=START, end=end, minutes=480),),
        "requests": 1000, "series": 3, "throttled_then": 0, "assumptions": ("brokers are brokers",),
    }  # fmt: skip
    return Provenance(**fields | given)


def report_of(*verdicts: BucketVerdict, **given: Any) -> BacktestReport:
    fields: dict[str, Any] = {"provenance": provenance(), "verdicts": verdicts, "cluster": "prod-eu"}
    return BacktestReport(**fields | given)


def full(name: str = "alice", client: str = "app") -> BacktestReport:
    """A report in which everything that there can be is there, under this name."""
    bucket = BucketName(user=name, client_id="")
    hit = verdict(
        user=name,
        entity=Entity.of({"user": name}) if name else _ANYONE,
        verdict=Verdict.THROTTLED,
        seconds_over=900,
        seconds_certain=880,
        seconds_possible=950,
        first=START,
        longest_s=60,
        longest_from=START,
        peak=250_000.0,
        safe=256_000.0,
        recommended=307_200.0,
        margin=0.5,
        members=(member(name, client), member(None, None)),
        buckets_before=(BucketName(user=name, client_id=client), BucketName(user="", client_id="", other=((name, client),))),
        rates=rates(),
    )
    return report_of(
        hit,
        verdict(user=f"{name}2", verdict=Verdict.POSSIBLE, seconds_possible=5, first=START),
        verdict(user=f"{name}3", verdict=Verdict.INCONCLUSIVE, reason=f"nobody knows {name}"),
        verdict(user="calm"),
        verdict(user="quiet", changed=False),
        cluster=name or None,
        provenance=provenance(
            coverage=(
                Coverage(broker=1, requests=9, start=START, end=END, minutes=480, minutes_missing=110, first_missing=START),
            ),
            unreadable=UnreadableLines(lines=3, samples=(f"log: {name}",)),
            not_charged={"other-api": 4},
            throttled_then=2,
        ),
        rules=(
            RuleOutcome(
                words="no bucket that changes may be throttled",
                reason=name,
                span=Span(file="c.yaml", line=3, column=1),
                failed=(
                    FailedBucket(
                        bucket=bucket, key="producer_byte_rate", broker=1, verdict=Verdict.THROTTLED, seconds=900, owners=(name,)
                    ),
                ),
            ),
            RuleOutcome(words="no bucket that changes may be inconclusive for 5 s or more", reason=None, span=None),
        ),
        unused=(UnusedQuota(entity=_ALICE, key="consumer_byte_rate", value=5e6, reason=NotJudged.OVERRIDDEN),),
        notes=(f"{name} counts after merge",),
        findings=(Finding(id="would-throttle", severity=Severity.WARNING, message=f"{name} would have been throttled"),),
    )
