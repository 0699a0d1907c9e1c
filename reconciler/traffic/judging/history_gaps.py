"""How much of the time a history covers, broker by broker, and what cannot be said when that is too little."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import BucketVerdict, Coverage, HistoryNeeds, Provenance, Verdict

_HOUR_S: Final = 3600
_HELD_BACK: Final = 0.5
"""Of the recorded requests, those that were throttled: from here on a rate shows the quota of then, and not the demand."""
_MOST_SHOWN: Final = 10


def hour_of(moment: datetime.datetime) -> int:
    """Hours since 1970."""
    return int(moment.timestamp()) // _HOUR_S


def may_have_gaps(coverage: Sequence[Coverage]) -> bool:
    """Whether a whole hour lies within one broker's own history: only then is there more to know than its ends."""
    return any(hour_of(one.end) - hour_of(one.start) > 1 for one in coverage)


def with_gaps(coverage: Sequence[Coverage], hours: Mapping[int, Collection[int]]) -> tuple[Coverage, ...]:
    """The same with the whole hours of the history that each broker lacks. ``hours``: those since 1970 that each one has.

    Brokers without an entry have all hours from their first request to the last.
    """
    if not coverage:
        return ()
    first = -(-int(min(one.start for one in coverage).timestamp()) // _HOUR_S)
    last = hour_of(max(one.end for one in coverage))
    found = []
    for one in coverage:
        present = hours.get(one.broker)
        there = set(range(hour_of(one.start), hour_of(one.end) + 1)) if present is None else set(present)
        missing = [hour for hour in range(first, last) if hour not in there]
        found.append(
            replace(
                one,
                hours=max(0, last - first),
                hours_missing=len(missing),
                first_missing=datetime.datetime.fromtimestamp(missing[0] * _HOUR_S, tz=datetime.UTC) if missing else None,
            )
        )
    return tuple(found)


def judged_by_history(
    verdicts: Sequence[BucketVerdict], provenance: Provenance, needs: HistoryNeeds
) -> tuple[BucketVerdict, ...]:
    """What is clear only because the history shows too little is inconclusive; what is seen to be throttled stays so."""
    short = _short(provenance, needs) or _brokers_missing(provenance)
    holes = {one.broker: why for one in provenance.coverage if (why := _hole(one, needs))}
    return tuple(
        replace(one, verdict=Verdict.INCONCLUSIVE, reason=why)
        if one.verdict is Verdict.CLEAR
        and one.limit_after is not None
        and (why := short or holes.get(one.broker) or _held_back(one))
        else one
        for one in verdicts
    )


def _short(provenance: Provenance, needs: HistoryNeeds) -> str | None:
    hours = (provenance.end - provenance.start).total_seconds() / _HOUR_S
    if hours >= needs.hours:
        return None
    return f"the history is {hours:.1f} hours long, and {needs.hours:g} are needed (history.hours)"


def _brokers_missing(provenance: Provenance) -> str | None:
    """By their number: a log does not say which broker wrote it, and its name may not either."""
    named, recorded = provenance.named_brokers, [one.broker for one in provenance.coverage]
    if len(named) <= len(recorded):
        return None
    shown = ", ".join(map(str, named[:_MOST_SHOWN])) + (", ..." if len(named) > _MOST_SHOWN else "")
    return (
        f"recorded answers name {len(named)} brokers ({shown}), and traffic of {len(recorded)} is given "
        f"({', '.join(map(str, recorded[:_MOST_SHOWN]))}): give the logs of all brokers"
    )


def _held_back(one: BucketVerdict) -> str | None:
    if one.requests == 0 or one.throttled_then < _HELD_BACK * one.requests:
        return None
    return (
        f"quotas throttled {100 * one.throttled_then / one.requests:.0f} % of its requests when they were recorded: the history "
        "does not show how much its clients would send without"
    )


def _hole(one: Coverage, needs: HistoryNeeds) -> str | None:
    if 100 * one.share >= needs.coverage_percent or one.first_missing is None:
        return None
    return (
        f"broker {one.broker} was not recorded in {one.hours_missing} of {one.hours} whole hours, the first at "
        f"{one.first_missing:%Y-%m-%d %H:%M} UTC; {needs.coverage_percent:g} % are needed (history.coveragePercent)"
    )
