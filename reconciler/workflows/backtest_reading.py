"""A backtest's JSON document back into the report, as far as a comment shows it: findings and rates over time stay behind."""

from __future__ import annotations

import json
from collections.abc import Mapping

from reconciler.errors import FileAccessError
from reconciler.model import (
    BacktestReport,
    BucketName,
    BucketVerdict,
    CapacityUse,
    Coverage,
    EntityType,
    FailedBucket,
    Fit,
    Form,
    Member,
    NotJudged,
    PeakBound,
    Provenance,
    QuotaFit,
    Regrouped,
    RuleOutcome,
    UnjudgedChange,
    UnusedQuota,
    UnusedReason,
    Verdict,
)
from reconciler.planning import Place


def read_backtest_report(text: str, *, name: str) -> BacktestReport:
    """The report. Raises ``FileAccessError`` for what is no such document of this major version."""
    try:
        return _report(Place("the document", json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise FileAccessError(f"{name} is not a report that 'backtest --format json' wrote: {error}") from error


def _report(document: Place) -> BacktestReport:
    version = document["format_version"].text()
    if version.split(".")[0] != "1":
        raise document["format_version"].wrong("1.x")
    return BacktestReport(
        cluster=document["cluster"].optional(Place.text),
        rules=tuple(_rule(one) for one in document["rules"].items()),
        provenance=_provenance(document["provenance"]),
        verdicts=tuple(_verdict(one) for one in document["verdicts"].items()),
        unjudged=tuple(read_unjudged(one) for one in document["unjudged"].items()),
        unused=tuple(
            UnusedQuota(
                entity=one["entity"].entity(),
                key=one["key"].text(),
                value=one["value"].amount(),
                reason=one["reason"].one_of(UnusedReason),
            )
            for one in document["unused"].items()
        ),
        fits=tuple(_fit(one) for one in document["fits"].items()),
        capacity=tuple(_capacity(one) for one in document["capacity"].items()),
        notes=tuple(one.text() for one in document["notes"].items()),
    )


def _provenance(place: Place) -> Provenance:
    return Provenance(
        source=place["source"].text(),
        form=place["form"].one_of(Form),
        files=tuple(one.text() for one in place["files"].items()),
        semantics=place["semantics"].text(),
        start=place["span"]["from"].moment(),
        end=place["span"]["to"].moment(),
        coverage=tuple(
            Coverage(
                broker=_whole(one["broker"]),
                requests=one["requests"].count(0),
                start=one["from"].moment(),
                end=one["to"].moment(),
                minutes=one["minutes"].count(0),
                minutes_missing=one["minutes_missing"].count(0),
                first_missing=one["first_missing"].optional(Place.moment),
            )
            for one in place["coverage"].items()
        ),
        requests=place["requests"].count(0),
        series=place["series"].count(0),
        censored=place["censored"].count(0),
        throttled_then=place["throttled_then"].count(0),
        not_charged={kind: place["not_charged"][kind].count(0) for kind in place["not_charged"].mapping()},
        unreadable=place["unreadable"]["lines"].count(0),
        current_known=place["current_known"].flag(),
        assumptions=tuple(one.text() for one in place["assumptions"].items()),
    )


def _verdict(place: Place) -> BucketVerdict:
    bucket = _bucket(place["bucket"])
    return BucketVerdict(
        user=bucket.user,
        client_id=bucket.client_id,
        tags=bucket.other,
        key=place["key"].text(),
        broker=_whole(place["broker"]),
        entity=place["entity"].optional(Place.entity),
        limit_before=place["limit_before"].optional(Place.amount),
        limits_before=tuple(one.optional(Place.amount) for one in place["limits_before"].items()),
        limit_after=place["limit_after"].optional(Place.amount),
        changed=place["changed"].flag(),
        verdict=place["verdict"].one_of(Verdict),
        reason=place["reason"].optional(Place.text),
        requests=place["requests"].count(0),
        throttled_before=place["throttled_before"].optional(_count),
        throttled=place["throttled_after"].optional(_count),
        active_seconds=place["active_seconds"].count(0),
        seconds_certain=place["seconds_certain"].count(0),
        seconds_over=place["seconds_over"].count(0),
        seconds_possible=place["seconds_possible"].count(0),
        seconds_over_before=place["seconds_over_before"].optional(_count),
        first=place["first"].optional(Place.moment),
        longest_s=place["longest_s"].count(0),
        longest_from=place["longest_from"].optional(Place.moment),
        peak=place["peak"].amount(),
        peak_bound=place["peak_bound"].one_of(PeakBound),
        recommended=place["recommended"].optional(Place.amount),
        recommended_reason=place["recommended_reason"].optional(Place.text),
        members=tuple(_member(one) for one in place["members"].items()),
        undecided=place["undecided"].flag(),
        regrouped=place["regrouped"].one_of(Regrouped),
        buckets_before=tuple(_bucket(one) for one in place["buckets_before"].items()),
    )


def _member(place: Place) -> Member:
    return Member(
        user=place["user"].optional(Place.text),
        client_id=place["client_id"].optional(Place.text),
        share=place["share"].amount(),
        requests=place["requests"].count(0),
        limit_before=place["limit_before"].optional(Place.amount),
        share_of_excess=place["share_of_excess"].optional(Place.amount),
    )


def _rule(place: Place) -> RuleOutcome:
    return RuleOutcome(
        words=place["rule"].text(),
        reason=place["reason"].optional(Place.text),
        span=None,
        failed=tuple(
            FailedBucket(
                bucket=_bucket(one["bucket"]),
                key=one["key"].text(),
                broker=_whole(one["broker"]),
                verdict=one["verdict"].one_of(Verdict),
                seconds=one["seconds"].count(0),
                owners=tuple(owner.text() for owner in one["owners"].items()),
            )
            for one in place["failed"].items()
        ),
        unjudged=tuple(read_unjudged(one) for one in place["unjudged"].items()),
    )


def read_unjudged(place: Place) -> UnjudgedChange:
    """One change without recorded traffic. Raises ``ValueError`` as ``Place`` does."""
    return UnjudgedChange(
        entity=place["entity"].entity(),
        key=place["key"].text(),
        before=place["limit_before"].optional(Place.amount),
        after=place["limit_after"].optional(Place.amount),
        reason=place["reason"].one_of(NotJudged),
    )


def _fit(place: Place) -> QuotaFit:
    return QuotaFit(
        entity=place["entity"].entity(),
        key=place["key"].text(),
        limit=place["limit"].amount(),
        fit=place["fit"].one_of(Fit),
        share=place["share"].amount(),
        buckets=place["buckets"].count(0),
        fullest=_bucket(place["fullest"]),
        broker=_whole(place["broker"]),
    )


def _capacity(place: Place) -> CapacityUse:
    return CapacityUse(
        broker=_whole(place["broker"]),
        key=place["key"].text(),
        capacity=place["capacity"].amount(),
        before=place["limits_before"].optional(Place.amount),
        after=place["limits_after"].amount(),
        buckets=place["buckets"].count(0),
        unlimited=place["unlimited"].count(0),
    )


def _bucket(place: Place) -> BucketName:
    tags: Mapping[str, str] = {tag: place[tag].text() for tag in place.mapping()}
    known = (EntityType.USER.value, EntityType.CLIENT_ID.value)
    user, client_id = (tags.get(tag, "") for tag in known)
    return BucketName(user=user, client_id=client_id, other=tuple(sorted((t, n) for t, n in tags.items() if t not in known)))


def _count(place: Place) -> int:
    return place.count(0)


def _whole(place: Place) -> int:
    return place.count(-1)
