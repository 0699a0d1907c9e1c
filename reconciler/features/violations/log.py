"""A broker's log of quota violations as traffic: throttles of the quotas of that time, added up by second, and no traffic.

Lines such as ``[2026-11-22 14:03:00,123] DEBUG Quota violated for sensor (Produce-alice:app). Delay time: (7284) (...)`` of the
loggers ``org.apache.kafka.server.quota.ClientQuotaManager`` and ``...ControllerMutationQuotaManager``; up to 4.1
``kafka.server.ClientQuotaManager``, ``ClientRequestQuotaManager`` and ``ControllerMutationQuotaManager``. Sources:
``ClientQuotaManager.recordAndGetThrottleTimeMs`` and ``getQuotaSensorName`` of Kafka 3.9 and 4.3.

A sensor is named by its kind and the values of its tags, joined by colons. Kafka's own tags are the user and the client-id.
The user is percent-encoded there and has no colon of its own, so the first colon ends it. Tags of a
``client.quota.callback.class`` are in no such order: their values are read the same way, and may be anything.
"""

from __future__ import annotations

import re
import urllib.parse
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from reconciler.errors import TrafficError, UsageError
from reconciler.model import (
    BucketName,
    BucketVerdict,
    Entity,
    Observations,
    PeakBound,
    PeakRate,
    Provenance,
    RecordedGroup,
    RowLimits,
    RowPlace,
    SecondsOver,
    Verdict,
)
from reconciler.resolution import CLIENT_LEVELS, USER_LEVELS, Candidate, Resolver
from reconciler.text import list_some
from reconciler.traffic import (
    MARKER,
    BacktestRequest,
    Covered,
    Evidence,
    Facts,
    Integers,
    Kind,
    LineClock,
    Mean,
    Quota,
    Reading,
    RecordedThrottle,
    Series,
    Source,
    Tables,
    Traffic,
    TrafficSource,
    coverage_of,
    find_logs,
    has_text,
    log_parts,
    moment,
    split_argument,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIOLATION: Final = b"Quota violated for sensor ("
STATUS: Final = "violation"
"""The status of its lines, and their semantics."""
_LINE: Final = re.compile(
    rb"Quota violated for sensor \((Produce|Fetch|Request|ControllerMutation)-([^:]*):(.*)\)\. Delay time: \((\d{1,18})\)",
    re.DOTALL,
)
_KINDS: Final = {b"Produce": Kind.PRODUCE, b"Fetch": Kind.FETCH, b"Request": Kind.REQUEST, b"ControllerMutation": Kind.MUTATION}
_SAMPLES: Final = 5
_SHOWN: Final = 200
_SECOND_US: Final = 1_000_000
_MINUTE_US: Final = 60_000_000
_ASSUMPTION: Final = (
    "a violation log has throttles and no traffic. A line proves that the quotas of that time throttled its quota group, "
    "and they are taken to be the current ones. It judges no changed limit, and a time without a line proves nothing"
)


class ViolationLogs(Traffic):
    """Logs in which brokers note the clients that they throttle."""

    source: ClassVar[Source] = Source.VIOLATIONS
    has_rows: ClassVar[bool] = False
    has_amounts: ClassVar[bool] = False

    @staticmethod
    def claims(path: Path) -> bool:
        """Logs of which no line is of a request, and some is of a violation."""
        try:
            requests, every = (find_logs([str(path)], named=named) for named in (True, False))
        except TrafficError:
            return False
        _, below = split_argument(str(path))
        # Of a folder, and of a file that is named as a log, the core has looked for a request before it asks.
        was_asked = below.is_dir() or ".log" in below.name
        if not was_asked and any(has_text(file, MARKER) for log in requests for file in log.files):
            return False
        return any(has_text(file, VIOLATION) for log in every for file in log.files)

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Traffic:
        """See ``Traffic.of``."""
        return cls(logs=find_logs(arguments, named=False))

    def refused(self) -> UsageError:
        """See ``Traffic.refused``."""
        return UsageError(
            f"{list_some(self.files, 1)} is a violation log, which has throttles and no traffic. Give it to backtest or why, or "
            "give other traffic here"
        )

    def open(self, session: Callable[[], SparkSession], reading: Reading, *, in_process: bool) -> TrafficSource:
        """See ``Traffic.open``."""
        del session, in_process
        throttles = SecondsOfThrottles(reading.log_timezone)
        for part in log_parts(self.logs, 1):
            for line in part.lines():
                throttles.add(line, part.broker)
        return ViolationTraffic(throttles.in_order(), self.files, unreadable=throttles.unreadable, samples=throttles.samples)


class SecondsOfThrottles:
    """Adds up violations by quota group and second. ``zone``: of times without an offset."""

    def __init__(self, zone: str = "UTC") -> None:
        self._clock = LineClock(zone)
        self._seconds: dict[tuple[int, int, Kind, str | None, str | None], RecordedThrottle] = {}
        self.unreadable = 0
        """Lines of violations without a clear time, or of another form."""
        self.samples: tuple[str, ...] = ()
        """Some of them."""

    def add(self, line: bytes, broker: int) -> None:
        """A line of a broker's log, which may be another one."""
        begin = line.find(VIOLATION)
        if begin < 0:
            return
        moment, match = self._clock.read(line, begin), _LINE.match(line, begin)
        if moment is None or moment.unclear or match is None:
            self.unreadable += 1
            if len(self.samples) < _SAMPLES:
                self.samples += (line[:_SHOWN].decode("utf-8", "replace").rstrip("\n"),)
            return
        at_us, delay_ms = moment.micros, int(match[4])
        # Without a name the quota is not one of users, or of client-ids. A client without a client-id looks the same.
        throttle = RecordedThrottle(
            broker=broker,
            kind=_KINDS[match[1]],
            user=urllib.parse.unquote(match[2].decode("utf-8", "replace"), errors="replace") if match[2] else None,
            client_id=match[3].decode("utf-8", "replace") if match[3] else None,
            begin_us=at_us,
            end_us=at_us + delay_ms * 1000,
            requests=1,
            throttle_ms=delay_ms,
            longest_ms=delay_ms,
        )
        place = at_us // _SECOND_US, broker, throttle.kind, throttle.user, throttle.client_id
        known = self._seconds.get(place)
        self._seconds[place] = throttle if known is None else _joined(known, throttle)

    def in_order(self) -> tuple[RecordedThrottle, ...]:
        """Return the throttles in order of time."""
        places = sorted(self._seconds, key=lambda place: (*place[:3], place[3] or "", place[4] or ""))
        return tuple(self._seconds[place] for place in places)


def _joined(known: RecordedThrottle, more: RecordedThrottle) -> RecordedThrottle:
    return replace(
        known,
        begin_us=min(known.begin_us, more.begin_us),
        end_us=max(known.end_us, more.end_us),
        requests=known.requests + more.requests,
        throttle_ms=known.throttle_ms + more.throttle_ms,
        longest_ms=max(known.longest_ms, more.longest_ms),
    )


class ViolationTraffic:
    """What the files of brokers' violation logs have. It has no series: nothing of it can be judged under other limits."""

    series: tuple[Series, ...] = ()
    means: tuple[Mean, ...] = ()
    states_throttles: bool = True

    def __init__(
        self, throttles: Sequence[RecordedThrottle], files: Sequence[str], *, unreadable: int = 0, samples: tuple[str, ...] = ()
    ) -> None:
        """``throttles``: in order of time. Raises ``TrafficError`` when there are none."""
        if not throttles:
            raise TrafficError(f"recorded traffic {list_some(files, 1)}: no quota violation of this time can be read")
        self.throttles = tuple(throttles)
        self._files = tuple(files)
        requests = sum(second.requests for second in throttles)
        groups = len({(second.broker, second.kind, second.user, second.client_id) for second in throttles})
        parts = (Covered(broker=each.broker, requests=0, start_us=each.begin_us, end_us=each.end_us) for each in throttles)
        self.facts: Facts = Facts(
            source=Source.VIOLATIONS.value,
            files=tuple(files),
            coverage=coverage_of(parts),
            requests=0,
            throttled_then=requests,
            not_charged={STATUS: requests},
            observations=(Observations(semantics=STATUS, rows=requests, series=groups, throttled_then=requests),),
            unreadable=unreadable,
            unreadable_samples=samples,
            assumptions=(_ASSUMPTION,),
        )

    def between(self, start_us: int, end_us: int) -> ViolationTraffic:
        """The seconds from ``start_us`` on and before ``end_us``. Raises ``TrafficError`` when there are none."""
        return ViolationTraffic([each for each in self.throttles if start_us <= each.begin_us < end_us], self._files)

    def minutes(self) -> Mapping[int, Integers]:
        """All of them: a silence of a violation log is not a gap."""
        first = min(second.begin_us for second in self.throttles) // _MINUTE_US
        last = max(second.end_us for second in self.throttles) // _MINUTE_US
        return {broker: np.arange(first, last + 1) for broker in {second.broker for second in self.throttles}}

    def evidence(self, question: BacktestRequest, tables: Sequence[Tables], provenance: Provenance) -> Evidence:
        """A verdict for each quota group and broker that logged a throttle."""
        del provenance
        before = tables[0] if len(tables) > 1 else None
        return judge_violations(self.throttles, before, tables[-1], in_effect=question.in_effect)

    def by_seconds(self, grouping: object, groups: object, window: object) -> Mapping[int, Any]:
        """Return nothing, since there are no requests."""
        del grouping, groups, window
        return {}

    mutations = by_seconds

    def rates(self, grouping: object, groups: object, lines: object) -> Mapping[int, Any]:
        """Return nothing, as ``by_seconds``."""
        return self.by_seconds(grouping, groups, lines)

    def close(self) -> None:
        """Do nothing: no rows are kept."""


LOGGED: Final = "brokers logged throttles under the quotas of that time"
CHANGED: Final = "brokers logged throttles under the quotas of that time, and no traffic: it shows nothing about a changed limit"
NOT_KNOWN: Final = (
    "brokers logged throttles under the quotas of that time, which are not known: give --current, and it proves limits that stay"
)
OTHER_GROUP: Final = "brokers logged throttles of a quota group that the current quotas do not have"
_OF_SHAPE: Final = {(True, False): frozenset(USER_LEVELS), (False, True): frozenset(CLIENT_LEVELS)}
_PAUSE_S: Final = 12
"""Seconds without a throttle that end an episode: no request counts longer in a sampled rate."""


def judge_violations(throttles: Sequence[RecordedThrottle], before: Tables | None, after: Tables, *, in_effect: bool) -> Evidence:
    """One verdict for each quota group and broker. None is ever ``clear``, since a log has neither the traffic nor the limit.

    A line names the quota group of that time, and proves that the quotas of that time throttled it. They are taken to be the
    current ones, so only groups whose quotas stay are ``throttled``. ``in_effect``: ``after`` are the quotas of that time.
    """
    groups: dict[tuple[int, str, str | None, str | None], list[RecordedThrottle]] = defaultdict(list)
    for second in throttles:
        groups[second.broker, second.key, second.user, second.client_id].append(second)
    verdicts: list[BucketVerdict] = []
    rows: dict[Quota, set[RowPlace]] = {}
    for seconds in groups.values():
        judged, entities = _judged(seconds, before, after, in_effect=in_effect)
        verdicts.append(judged)
        for entity in entities:
            rows.setdefault((entity, judged.key), set()).add(judged.place)
    return Evidence(verdicts=tuple(verdicts), rows=rows)


def _judged(
    seconds: Sequence[RecordedThrottle], before: Tables | None, after: Tables, *, in_effect: bool
) -> tuple[BucketVerdict, Collection[Entity]]:
    first = seconds[0]
    now, then = _candidates(after, first), None if before is None else _candidates(before, first)
    winner, earlier = _of_tags(now, first), None if then is None else _of_tags(then, first)
    stays = in_effect or (then is not None and then == now)
    if stays and winner is not None:
        verdict, reason = Verdict.THROTTLED, LOGGED
    elif stays:
        verdict, reason = Verdict.INCONCLUSIVE, OTHER_GROUP
    else:
        verdict, reason = Verdict.INCONCLUSIVE, NOT_KNOWN if then is None else CHANGED
    proven = verdict is Verdict.THROTTLED
    requests, count = sum(second.requests for second in seconds), len(seconds)
    longest_s, longest_from = _longest_episode(seconds)
    limit = earlier.value if earlier is not None else None
    judged = BucketVerdict(
        key=first.key,
        broker=first.broker,
        name=BucketName(user=first.user or "", client_id=first.client_id or ""),
        limits=RowLimits(
            entity=None if winner is None else winner.entity,
            before=() if then is None else (limit,),
            after=None if winner is None else winner.value,
        ),
        changed=not stays,
        verdict=verdict,
        reason=f"{reason} ({requests:,})",
        recorded=RecordedGroup(throttled=requests),
        over=SecondsOver(
            certain=count if proven else 0,
            seconds=count if proven else 0,
            possible=count if proven else 0,
            before=None if then is None else count,
            first=moment(first.begin_us) if proven else None,
            longest_s=longest_s if proven else 0,
            longest_from=moment(longest_from) if proven else None,
        ),
        # A rate above its limit is what a broker throttles for.
        peak=PeakRate(rate=winner.value if proven and winner is not None else limit or 0.0, bound=PeakBound.LOWER),
    )
    return judged, {candidate.entity for candidate in (*now, *(then or ()))}


def _candidates(tables: Tables, second: RecordedThrottle) -> frozenset[Candidate]:
    """Quotas that may apply to clients of the group; none where a callback decides."""
    table = tables[second.key]
    return table.touches(second.user, second.client_id) if isinstance(table, Resolver) else frozenset()


def _of_tags(candidates: Collection[Candidate], second: RecordedThrottle) -> Candidate | None:
    """The strongest quota that gives groups these tags."""
    both = frozenset((*USER_LEVELS, *CLIENT_LEVELS))
    wanted = _OF_SHAPE.get((second.user is not None, second.client_id is not None))
    fitting = [
        candidate
        for candidate in candidates
        if (candidate.level in wanted if wanted is not None else candidate.level not in both)
    ]
    return min(fitting, key=lambda candidate: candidate.level, default=None)


def _longest_episode(throttles: Sequence[RecordedThrottle]) -> tuple[int, int]:
    """Return the longest episode: its length in seconds, both ends counted, and its begin in microseconds since 1970."""
    longest, best_from = 0, throttles[0].begin_us
    begin_us, begin, previous = best_from, best_from // _SECOND_US, best_from // _SECOND_US
    for throttle in throttles:
        second = throttle.begin_us // _SECOND_US
        if second - previous > _PAUSE_S:
            begin_us, begin = throttle.begin_us, second
        if second - begin + 1 > longest:
            longest, best_from = second - begin + 1, begin_us
        previous = second
    return longest, best_from
