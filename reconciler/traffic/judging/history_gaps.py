"""Gaps of a history: uncovered time, thread time that logs lack, and the assumptions about both.

A broker without requests writes no lines either, so a silence proves nothing by itself. It counts as a hole when it lasts 90
minutes, or when it is ten times as long as nearly all of the broker's other pauses (``_SHORTEST_MIN`` at least). A report names
an assumption only where the history has that kind of traffic.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from reconciler.model import BucketVerdict, Coverage, HistoryNeeds, Provenance, QuotaKey, Verdict
from reconciler.resolution import AddressTable, QuotaTable
from reconciler.text import length_text, list_some
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.log_evidence import WHOLE_STEP

_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_LONGEST_PAUSE_MIN: Final = 90
"""A silence of so many minutes is a hole, however quiet the broker is otherwise."""
_SHORTEST_MIN: Final = 10
"""A shorter silence is never a hole."""
_UNUSUAL: Final = 10
"""A silence this many times longer than the broker's usual pause is a hole."""
_USUAL_SHARE: Final = 0.95
_FEWEST_PAUSES: Final = 21
"""From so many pauses on, the longest one in twenty is not simply the longest."""
_MOST_SHOWN: Final = 10


def may_have_gaps(coverage: Sequence[Coverage]) -> bool:
    """Whether a hole fits into one broker's own history, beside the pauses that make it unusual."""
    most = max(((part.end - part.start).total_seconds() for part in coverage), default=0.0)
    return most > (_FEWEST_PAUSES + _SHORTEST_MIN - 1) * _MINUTE_S


def holes_of(
    coverage: Sequence[Coverage], minutes: Mapping[int, Integers], known: Mapping[int, Integers] | None = None
) -> dict[int, Integers]:
    """By broker the holes of its recording, shape ``(holes, 2)``: the first minute since 1970, and the first one after.

    ``minutes``: by broker those since 1970 in which it has any line, rising, each once. A broker without an entry has every
    minute from its first request to its last. Only whole minutes between the first and last request of all brokers can be in a
    hole. ``known``: by broker minutes that the recorder itself noted as not observed.
    """
    if not coverage:
        return {}
    first = math.ceil(min(part.start for part in coverage).timestamp() / _MINUTE_S)
    last = int(max(part.end for part in coverage).timestamp()) // _MINUTE_S
    holes = {part.broker: _holes(_recorded(part, minutes.get(part.broker)), first, last) for part in coverage}
    noted = {broker: some for broker, some in (known or {}).items() if broker in holes}
    return holes | {broker: _joined(holes[broker], some[(some >= first) & (some < last)]) for broker, some in noted.items()}


def _joined(holes: Integers, minutes: Integers) -> Integers:
    """Holes, and minutes in none of them, as holes."""
    missing = np.unique(np.concatenate([*(np.arange(begin, end) for begin, end in holes.tolist()), minutes]))
    if not len(missing):
        return holes
    begins = np.flatnonzero(np.diff(missing, prepend=missing[0] - 2) != 1)
    ends = np.append(begins[1:], len(missing)) - 1
    return np.stack((missing[begins], missing[ends] + 1), axis=1)


def add_gaps(coverage: Sequence[Coverage], holes: Mapping[int, Integers]) -> tuple[Coverage, ...]:
    """The same with the length of the whole history, and how much each broker lacks of it. ``holes``: from ``holes_of``."""
    if not coverage:
        return ()
    first = math.ceil(min(part.start for part in coverage).timestamp() / _MINUTE_S)
    last = int(max(part.end for part in coverage).timestamp()) // _MINUTE_S
    return tuple(
        replace(
            part,
            minutes=max(0, last - first),
            minutes_missing=int(np.diff(holes[part.broker]).sum()),
            first_missing=_moment(int(holes[part.broker][0, 0])) if len(holes[part.broker]) else None,
        )
        for part in coverage
    )


def doubts_of(provenance: Provenance, needs: HistoryNeeds) -> Callable[[BucketVerdict], str | None]:
    """Gives why a clear row is inconclusive after all: its history shows too little. What is seen to be throttled stays so."""
    short = _short(provenance, needs) or _brokers_missing(provenance) or _lines_missing(provenance)
    holes = {part.broker: why for part in provenance.coverage if (why := _hole(part, needs))}

    def doubt(verdict: BucketVerdict) -> str | None:
        if verdict.verdict is not Verdict.CLEAR or verdict.limits.after is None:
            return None
        unlogged = NO_NETWORK_TIME if lacks_network_time(verdict.key, provenance.source) else None
        return unlogged or short or holes.get(verdict.broker)

    return doubt


def _recorded(coverage: Coverage, minutes: Integers | None) -> Integers:
    if minutes is not None:
        return minutes
    return np.arange(int(coverage.start.timestamp()) // _MINUTE_S, int(coverage.end.timestamp()) // _MINUTE_S + 1, dtype=np.int64)


def _holes(recorded: Integers, first: int, last: int) -> Integers:
    """``first``, ``last``: the whole minutes of the history, without the last one."""
    inside = recorded[(recorded >= first) & (recorded < last)]
    pauses = np.diff(inside)
    usual = np.quantile(pauses, _USUAL_SHARE, method="higher") if len(pauses) >= _FEWEST_PAUSES else _LONGEST_PAUSE_MIN
    shortest = min(_LONGEST_PAUSE_MIN, max(_SHORTEST_MIN, _UNUSUAL * float(usual)))
    edges = np.concatenate(([first - 1], inside, [max(last, first)])).astype(np.int64)
    silent = np.diff(edges) - 1
    at = np.flatnonzero(silent >= shortest)
    return np.stack((edges[at] + 1, edges[at + 1]), axis=1)


def _moment(minute: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(minute * _MINUTE_S, tz=datetime.UTC)


def _short(provenance: Provenance, needs: HistoryNeeds) -> str | None:
    length_s, needed_s = (provenance.end - provenance.start).total_seconds(), needs.hours * _HOUR_S
    # The files of a day begin and end with some request of it.
    if length_s >= needed_s - _MINUTE_S:
        return None
    return f"the history is {length_text(length_s)} long, and {length_text(needed_s)} are needed (history.hours)"


def _brokers_missing(provenance: Provenance) -> str | None:
    """By their number: a log does not state which broker wrote it, and its name may not either."""
    recorded = [part.broker for part in provenance.coverage]
    expected = provenance.expected
    for named, source in ((expected.named, "recorded answers name"), (expected.in_cluster, "the cluster has")):
        if len(named) > len(recorded):
            return (
                f"{source} {len(named)} brokers ({_shown(named)}), and traffic of {len(recorded)} is given ({_shown(recorded)}): "
                "give the traffic of all brokers"
            )
    return None


def _shown(brokers: Sequence[int]) -> str:
    return list_some([str(broker) for broker in brokers], _MOST_SHOWN)


def _lines_missing(provenance: Provenance) -> str | None:
    step = provenance.request_step
    if step is None or step <= WHOLE_STEP:
        return None
    return (
        f"consecutive requests of one client are usually {step:g} correlation ids apart, so more than half of the lines are "
        "missing: give the whole logs of all brokers"
    )


def _hole(coverage: Coverage, needs: HistoryNeeds) -> str | None:
    if 100 * coverage.share >= needs.coverage_percent or (gap := coverage.gap_words) is None:
        return None
    return f"{gap}, and {needs.coverage_percent:g} % are needed (history.coveragePercent)"


def kind_assumptions(
    series: Sequence[Series], proposed: QuotaTable, window: Window, controller_window: Window, *, of_requests: bool, source: str
) -> Iterator[str]:
    """``of_requests``: single requests are known, not only sums of seconds. ``source``: as ``Provenance`` has it."""
    kinds = {client.kind for client in series}
    if Kind.REQUEST in kinds:
        yield (
            "request_percentage: nanoseconds of a thread, in percent of one. One throttle is at most "
            f"{window.sample_ms / 1000:g} s. What brokers do not charge (followers, produce without acks) is not in the history"
        )
        if lacks_network_time(Kind.REQUEST.key.value, source):
            yield (
                "request_percentage: a request log lacks the time of network threads. Peaks are lower bounds of unknown size, so "
                "no limit is clear, and no value is safe or recommended"
            )
    if Kind.REQUEST in kinds and not kinds.isdisjoint(BYTES):
        yield (
            "each quota is judged by itself: a request over two limits waits once, for the longer throttle. A broker takes back "
            "the bytes of a fetch that request_percentage throttles, and here they stay counted"
        )
    if Kind.MUTATION in kinds:
        yield (
            f"controller_mutation_rate: a token bucket for {controller_window.expiry_ms / 1000:g} s of the limit "
            "(controller.quota.window.num, controller.quota.window.size.seconds), full at first on each controller, "
            + ("topic by topic" if of_requests else "from sums of whole seconds, whatever the topics and API versions in them")
            + ". A refused topic is not asked for again, although clients retry"
        )
    if Kind.CONNECTION in kinds:
        yield (
            "connection_creation_rate: by address, each accepted connection once. A connection over the limit is closed after at "
            f"most {window.sample_ms / 1000:g} s and not counted. Further tries of its client, and limits of a listener or a "
            "whole broker, are not modelled"
        )
        if names := len(AddressTable(proposed).host_names):
            which = "1 quota of a host name is" if names == 1 else f"{names} quotas of host names are"
            yield f"{which} about addresses that only brokers know, and not considered"


_LOGGED: Final = frozenset({"request-log", "log-cells"})
"""Sources whose times are those of handlers only."""
NO_NETWORK_TIME: Final = (
    "a request log lacks the time of network threads, which counts against request_percentage, too. Record it with the recorder, "
    "the broker plugin of docs/recorder.md"
)


def lacks_network_time(key: str, source: str) -> bool:
    """Whether the recorded rates of ``key`` are short by an unknown part. ``source``: as ``Provenance`` has it."""
    return key == QuotaKey.REQUEST_PERCENTAGE.value and source in _LOGGED
