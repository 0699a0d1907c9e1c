"""What a history lacks: uncovered time, thread time that logs lack, and what throttled clients would have sent.

A broker without requests writes no lines either, so a silence proves nothing by itself. It counts as a hole when it lasts 90
minutes, or when it is ten times as long as nearly all of the broker's other pauses (``_SHORTEST_MIN`` at least). A report names
an assumption only where the history has that kind of traffic.

A throttled client sends less than it would. So the recorded rates of a group that its old limit throttled are lower bounds of its
need, and no higher limit is ``clear`` from them. Nor is a limit that stays: what a quota refused has no size in a recording.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from reconciler.model import BucketVerdict, Coverage, HistoryNeeds, Provenance, QuotaKey, Verdict, broker_words
from reconciler.resolution import AddressTable, QuotaTable
from reconciler.text import count_of, length_text, list_some, rate
from reconciler.traffic.judging.grouping import Grouping, Series, groups_before
from reconciler.traffic.kernels.exact_totals import GroupVerdict
from reconciler.traffic.kernels.sampled_rate import Integers, Window
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.log_evidence import WHOLE_STEP

_MINUTE_S: Final = 60
_LONGEST_PAUSE_MIN: Final = 90
"""A silence of so many minutes is a hole, however quiet the broker is otherwise."""
_SHORTEST_MIN: Final = 10
"""A shorter silence is never a hole."""
_UNUSUAL: Final = 10
"""A silence this many times longer than the broker's usual pause is a hole."""
_USUAL_SHARE: Final = 0.95
_FEWEST_PAUSES: Final = 21
"""From so many pauses on, the longest one in twenty is not simply the longest."""
SHORTEST_S: Final = (_FEWEST_PAUSES + _SHORTEST_MIN - 1) * _MINUTE_S
"""No hole fits into a shorter history, beside the pauses that make it unusual."""
_FEW_UNREAD: Final = 10_000
"""Of so many rows, one may be unreadable: a log has a torn line wherever its broker was killed."""
_MOST_SHOWN: Final = 10
_NO_HOLES: Final = np.empty((0, 2), dtype=np.int64)


def holes_of(
    coverage: Sequence[Coverage], minutes: Mapping[int, Integers], known: Mapping[int, Integers] | None = None
) -> dict[int, Integers]:
    """Return the holes of each broker's recording, shape ``(holes, 2)``: the first minute since 1970, and the first one after.

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
    """Return the same with the length of the whole history, and how much each broker lacks of it.

    ``holes``: from ``holes_of``. A broker that is not there lacks nothing.
    """
    if not coverage:
        return ()
    first = math.ceil(min(part.start for part in coverage).timestamp() / _MINUTE_S)
    last = int(max(part.end for part in coverage).timestamp()) // _MINUTE_S
    return tuple(
        replace(
            part,
            minutes=max(0, last - first),
            minutes_missing=int(np.diff(of_broker).sum()),
            first_missing=_moment(int(of_broker[0, 0])) if len(of_broker) else None,
        )
        for part in coverage
        for of_broker in (holes.get(part.broker, _NO_HOLES),)
    )


def doubts_of(provenance: Provenance, needs: HistoryNeeds) -> Callable[[BucketVerdict], str | None]:
    """Gives why a clear row is inconclusive after all: its history shows too little. What is seen to be throttled stays so."""
    short, holes = _missing(provenance, needs)

    def doubt(verdict: BucketVerdict) -> str | None:
        if verdict.verdict is not Verdict.CLEAR or verdict.limits.after is None:
            return None
        unlogged = NO_NETWORK_TIME if lacks_network_time(verdict.key, provenance.source) else None
        return unlogged or short or holes.get(verdict.broker)

    return doubt


def doubt_of_history(provenance: Provenance, needs: HistoryNeeds) -> str | None:
    """Return why a client that is in no row may have had traffic all the same; ``None``: the history lacks nothing."""
    short, holes = _missing(provenance, needs)
    unread = provenance.unreadable.lines
    if short is None and unread * _FEW_UNREAD > provenance.requests:
        short = f"{count_of(unread, 'row')} of the history cannot be read"
    return short or next(iter(holes.values()), None)


def _missing(provenance: Provenance, needs: HistoryNeeds) -> tuple[str | None, dict[int, str]]:
    """Return what the whole history lacks, and by broker what its recording does, as sentences."""
    length_s, needed_s, step = provenance.days * 86_400, needs.hours * 3600, provenance.expected.request_step
    short = _brokers_missing(provenance)
    # The files of a day begin and end with some request of it.
    if length_s < needed_s - _MINUTE_S:
        short = f"the history is {length_text(length_s)} long, and {length_text(needed_s)} are needed (history.hours)"
    elif short is None and step is not None and step > WHOLE_STEP:
        short = (
            f"consecutive requests of one client are usually {step:g} correlation ids apart, so more than half of the lines are "
            "missing: give the whole logs of all brokers"
        )
    holes = {
        part.broker: f"{part.gap_words}, and {needs.coverage_percent:g} % are needed (history.coveragePercent)"
        for part in provenance.coverage
        if part.minutes_missing and 100 * part.share < needs.coverage_percent
    }
    return short, holes


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


def _brokers_missing(provenance: Provenance) -> str | None:
    """Return why brokers are missing, judged by their number: neither a log nor its name need state which broker wrote it."""
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
            + ("topic by topic" if of_requests else "from per-second totals, whatever the topics and API versions in them")
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
    "a broker plugin (kafka-quotas explain record-traffic)"
)


def lacks_network_time(key: str, source: str) -> bool:
    """Whether the recorded rates of ``key`` are short by an unknown part. ``source``: as ``Provenance`` has it."""
    return key == QuotaKey.REQUEST_PERCENTAGE.value and source in _LOGGED


ENOUGH: Final = 0.01
"""Of the requests, the samples or the active seconds: from here on a group counts as throttled when it was recorded."""
WHAT_DECIDES: Final = "Raise the limit in steps and judge the traffic of each step, or record at a higher limit"


def are_enough(throttled: int, observed: int) -> bool:
    """Whether so many throttled requests, samples or seconds of those observed show what a limit did."""
    return throttled > 0 and throttled >= ENOUGH * observed


def old_limit_reason(key: str, old: float, new: float | None, seen: str, *, peak: float) -> str:
    """Explain why a limit that throttled clients shows nothing about a higher one (``None``: no limit), and what would.

    ``seen``: what it throttled, such as ``these clients in 3 of 10 samples``. ``peak``: a rate that they certainly had.
    """
    more = "how much they send without a limit" if new is None else "how much more"
    need = rate(key, max(old, peak))
    return (
        f"the old limit of {rate(key, old)} throttled {seen}. They need at least {need}, and the history does not show {more}. "
        f"{WHAT_DECIDES}"
    )


def recorded_reason(seen: str) -> str:
    """Explain why clients that some quota throttled are not clear without an old limit. ``seen``: as ``old_limit_reason``."""
    return (
        f"quotas throttled {seen} when they were recorded. The history does not show how much they would have sent. Record them "
        "again without throttles"
    )


def hold_back(verdicts: Sequence[BucketVerdict]) -> list[BucketVerdict]:
    """The same in their order, where a quota throttled a quota group on some broker.

    The values of a quota group are good for all brokers, so those are lower bounds on each, and it is clear on none.
    """
    throttled: dict[tuple[object, ...], BucketVerdict] = {}
    for row in sorted(verdicts, key=lambda row: (row.verdict is not Verdict.INCONCLUSIVE, row.broker)):
        if row.recorded.censored:
            throttled.setdefault(row.group, row)
    rows = []
    for row in verdicts:
        held, known = throttled.get(row.group), row
        if held is not None and not row.recorded.censored:
            known = replace(row, recorded=replace(row.recorded, censored=True))
            if held.verdict is Verdict.INCONCLUSIVE and row.verdict in (Verdict.CLEAR, Verdict.INCONCLUSIVE):
                known = replace(known, verdict=Verdict.INCONCLUSIVE, reason=f"on {broker_words(held.broker)}, {held.reason}")
        rows.append(known)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Clients that shared an old limit. ``limit``: ``None`` where there was none, or it is not known."""

    limit: float | None
    requests: int
    throttled: int
    active: int = 0
    near: int = 0

    def proves(self, after: float | None, *, stated: bool) -> bool:
        """Whether a quota throttled them. ``after``: the proposed limit. ``stated``: each request states it.

        Where requests do not, seconds near an old limit that rises may be what it let through.
        """
        near = are_enough(self.near, self.active)
        if self.throttled:
            return near or are_enough(self.throttled, self.requests)
        return not stated and near and self.is_raised(after)

    def is_raised(self, after: float | None) -> bool:
        """Whether their limit rises, or goes."""
        return self.limit is not None and (after is None or after > self.limit)

    def reason(self, key: str, after: float | None, peak: float) -> str:
        """Explain why they are not clear. ``peak``: a rate that they certainly had."""
        requests = f"{self.throttled:,} of {count_of(self.requests, 'request')} of these clients"
        seconds = f"in {self.near:,} of {count_of(self.active, 'active second')}"
        if self.limit is None or not self.is_raised(after):
            return recorded_reason(requests)
        if not self.throttled:
            return (
                f"these clients were near the old limit of {rate(key, self.limit)} {seconds}, and this traffic does not state "
                f"whether it throttled them. Give traffic that does, such as request logs. {WHAT_DECIDES}"
            )
        if self.active and not self.near:
            # Time of requests throttles, too, and the answers of all throttled fetches are empty.
            return (
                f"the old limit of {rate(key, self.limit)} or another quota throttled {requests}, whose recorded rate was in no "
                f"second near this limit. The history does not show how much they would have sent. {WHAT_DECIDES}"
            )
        seen = f"{requests}, and their rate was near it {seconds}" if self.near else requests
        return old_limit_reason(key, self.limit, after, seen, peak=peak)


def throttled_recording(
    index: int, series: Sequence[Series], grouping: Grouping, judged: Mapping[int, GroupVerdict], *, stated: bool
) -> Recording | None:
    """Return the members of a target, of one old limit, that a quota throttled most. ``None``: it throttled none of them.

    ``judged``: by group. ``stated``: each request states whether it was throttled.
    """
    target = grouping.targets[index]
    after, groups = target.after.value, groups_before(grouping, index)
    members_of: dict[int, list[int]] = {}
    for member in target.members:
        group = next((number for number in grouping.groups_of_series[member] if number in groups), -1)
        members_of.setdefault(group, []).append(member)
    recordings = []
    for group, members in members_of.items():
        before, whole = grouping.before_of_series[members[0]], judged.get(group)
        throttled, near = sum(series[member].throttled for member in members), 0 if whole is None else whole.near
        if not throttled and not near:
            continue
        recording = Recording(
            limit=None if before is None else before.value,
            requests=sum(series[member].requests for member in members),
            throttled=throttled,
            active=0 if whole is None else whole.active,
            near=near,
        )
        # No limit throttles no request. That is a doubt only where the change takes one away.
        if recording.proves(after, stated=stated) and (after is not None or recording.is_raised(after)):
            recordings.append(recording)
    return max(
        recordings, key=lambda part: (part.is_raised(after), part.throttled / max(part.requests, 1), part.near), default=None
    )
