"""Verdicts of a violation log, which has neither the traffic nor the limit. None is ever ``clear``.

Quota groups whose quotas do not change are ``throttled``, and nothing else is known. A line names the quota group of that time
and how long its request waited. So it proves that the quotas of that time throttled the group, which are taken to be the
current ones. How the same traffic would do under another limit is not known, and no line means nothing: the logger may have
been off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from reconciler.model import (
    BucketName,
    BucketVerdict,
    Entity,
    PeakBound,
    PeakRate,
    RecordedGroup,
    RowLimits,
    RowPlace,
    SecondsOver,
    Verdict,
)
from reconciler.resolution import CLIENT_LEVELS, USER_LEVELS, Candidate, Resolver
from reconciler.traffic import Evidence, Quota, RecordedThrottle, Tables, moment

LOGGED: Final = "brokers logged throttles under the quotas of that time"
CHANGED: Final = "brokers logged throttles under the quotas of that time, and no traffic: it cannot judge a changed limit"
NOT_KNOWN: Final = (
    "brokers logged throttles under the quotas of that time, which are not known: give --current, and it proves limits that stay"
)
OTHER_GROUP: Final = "brokers logged throttles of a quota group that the current quotas do not have"
_OF_SHAPE: Final = {(True, False): frozenset(USER_LEVELS), (False, True): frozenset(CLIENT_LEVELS)}
_SECOND_US: Final = 1_000_000
_PAUSE_S: Final = 12
"""Seconds without a throttle that end an episode: no request counts longer in a sampled rate."""


def judge_violations(throttles: Sequence[RecordedThrottle], before: Tables | None, after: Tables, *, in_effect: bool) -> Evidence:
    """One verdict for each quota group and broker. ``in_effect``: ``after`` are the quotas of that time."""
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
    """Its length in seconds, both ends counted, and when it began."""
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
