"""Whether a limit fits what a history shows of it, and which one would. Pure.

A limit rises on little evidence and falls on much: one throttled second raises it, and to lower it takes two whole weeks of its
own traffic without a throttle. The highest rate of the whole history decides, so that a quiet week lowers nothing. A value that
differs by less than a fifth is not proposed, or two runs would propose back and forth.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reconciler.manifest import SizingRules
from reconciler.model import BucketName, Entity, NotJudged, Provenance, QuotaKey, Span, Verdict
from reconciler.text import count_of, percent_text, rate

WEEKS: Final = datetime.timedelta(weeks=2)
"""The traffic that a limit needs before it is lowered. It is also left alone for this time after it was changed."""
LEAST_CHANGE: Final = 0.2
"""Of the present limit. A smaller change is none."""
_DAY: Final = datetime.timedelta(days=1)


class Sizing(enum.StrEnum):
    """How a declared quota fits the history."""

    RAISE = "raise"
    """Traffic was throttled, or may have been, or the limit is within the margin of the safe value."""
    LOWER = "lower"
    """Only a small part of the limit was ever used."""
    UNUSED = "unused"
    """No client used the quota for the whole of a long history."""
    INCONCLUSIVE = "inconclusive"
    """The history shows too little."""
    NOT_CHECKED = "not-checked"
    """The source records nothing that the key limits."""
    EXCLUDED = "excluded"
    """The manifest excludes the quota."""
    FITS = "fits"
    """The limit fits what was used of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What the history shows of one quota. Rates are in the unit of its key, each the highest of any quota group and broker."""

    groups: int = 0
    """Quota groups with recorded traffic that it limits."""
    highest: float = 0.0
    """The highest rate of any quota group on any broker, in the unit of the key."""
    fullest: BucketName | None = None
    """The quota group with the highest rate."""
    needed: float | None = None
    """The recommended limit: safe, and a margin by source and length of the history. ``None``: none is recommended."""
    tight: float = 0.0
    """A lower limit is within the margin of the safe value, without what the loss of a broker adds to ``needed``."""
    safe: float | None = None
    """The smallest round limit at which no request would have been throttled. ``None``: none is proven."""
    reason: str | None = None
    """How ``needed`` is made, or why there is none."""
    verdict: Verdict | None = None
    """The worst of its groups, under the present limit. ``None``: no traffic."""
    over: float = 0.0
    """The largest share of active seconds over the limit."""
    was_throttled: bool = False
    """A quota throttled its clients when they were recorded, so rates are lower bounds."""
    doubt: str | None = None
    """Why nothing proves that no request was throttled."""
    first: datetime.datetime | None = None
    """Time of its first recorded request, UTC. ``None``: not known."""
    last: datetime.datetime | None = None
    """Time of its last recorded request, UTC. ``None``: not known."""
    unused: NotJudged | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOutcome:
    """The backtest of a proposed limit, with all other proposals."""

    verdict: Verdict
    """The worst verdict of its quota groups."""
    reason: str | None = None
    """Why it is inconclusive. ``None``: it is not."""
    over: float = 0.0
    """The largest share of active seconds over the proposed limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedQuota:
    """One declared quota, what the history shows, and what is proposed."""

    entity: Entity
    """Entity type to name. ``None`` is the default entity of that type."""
    key: QuotaKey
    """The quota key."""
    limit: float
    """The declared value."""
    owner: str | None = None
    """Who declares it. ``None``: the manifest names no owner."""
    source: Span
    """Where its value stands: in an entry, an override or a profile."""
    sizing: Sizing
    """How it fits."""
    reason: str
    """Why, as a sentence."""
    use: QuotaUse = field(default_factory=QuotaUse)
    value: float | None = None
    """The proposed limit. ``None``: no value is proposed."""
    left: str | None = None
    """Why the proposed value is not written. ``None``: it is, or there is none."""
    outcome: ChangedOutcome | None = None
    """The backtest of the proposed limit. ``None``: no value is proposed."""

    @property
    def is_proposed(self) -> bool:
        """Whether a change of its value is written."""
        return self.value is not None and self.left is None

    @property
    def urgency(self) -> tuple[object, ...]:
        """Sorts the worst first: throttled, then what is nearest to its limit, then the largest room above the use."""
        return (
            list(Sizing).index(self.sizing),
            self.use.verdict is not Verdict.THROTTLED,
            -self.use.over,
            (-1 if self.sizing is Sizing.RAISE else 1) * self.use.highest / (self.limit or 1.0),
            self.entity.sort_key,
            self.key.value,
        )


Judgement: TypeAlias = tuple[Sizing, str, float | None]
"""How a quota fits, why, and the value that would. ``None``: no value is proposed."""


def judge_use(
    key: QuotaKey, limit: float, use: QuotaUse, history: Provenance, rules: SizingRules, *, of_default: bool, missing: str | None
) -> Judgement:
    """Return how a limit fits, and a better one. ``of_default``: it also limits clients that come later.

    ``missing``: what the history lacks, so that it shows neither that a quota is unused nor its highest rate.
    """
    if use.verdict is None:
        return _without_traffic(use, history, rules, of_default=of_default, missing=missing)
    if use.last is not None and history.end - use.last >= rules.days * _DAY and not of_default:
        return _unused(f"the last request was on {use.last:%Y-%m-%d}", missing)
    part = percent_text(use.highest / limit) if limit else "all"
    highest = f"the highest rate is {rate(key.value, use.highest)}, {part} of the limit"
    if use.verdict is Verdict.THROTTLED:
        share = "under 0.1 %" if use.over < 0.001 else percent_text(use.over)
        words = f"throttled in {share} of active time" if use.over else "a request was throttled under this limit"
        return _raised(key, limit, use, f"{words}, and {highest}", at_any_rate=True)
    sizing, reason, value = _unthrottled(key, limit, use, highest, history, rules)
    if sizing is Sizing.LOWER and missing is not None:
        return Sizing.INCONCLUSIVE, f"{reason}, but it is not lowered: {missing}", None
    return sizing, reason, value


def _unthrottled(key: QuotaKey, limit: float, use: QuotaUse, highest: str, history: Provenance, rules: SizingRules) -> Judgement:
    """``highest``: the highest rate, as a clause."""
    if use.needed is None:
        return Sizing.INCONCLUSIVE, use.reason or use.doubt or "the history shows no peak", None
    if limit < use.tight:
        words = "a request may have been throttled" if use.verdict is Verdict.POSSIBLE else "the limit is within the margin"
        return _raised(key, limit, use, f"{words}: {highest}", at_any_rate=False)
    if 100 * use.highest > rules.lower_below * limit:
        return Sizing.FITS, highest, None
    if (doubt := _doubt_to_lower(use, history)) is not None:
        return Sizing.INCONCLUSIVE, f"{highest}, but it is not lowered: {doubt}", None
    if use.needed <= limit * (1 - LEAST_CHANGE):
        return Sizing.LOWER, highest, use.needed
    return Sizing.FITS, f"{highest}, and with its margin that is near the limit", None


def _raised(key: QuotaKey, limit: float, use: QuotaUse, words: str, *, at_any_rate: bool) -> Judgement:
    value = use.needed
    if value is None or value <= limit:
        why = use.reason or "the history does not show how much more its clients would send"
        return Sizing.RAISE, f"{words}. No value is proposed: {why}", None
    if not at_any_rate and value < limit * (1 + LEAST_CHANGE):
        near = f"{rate(key.value, value)} would be less than {percent_text(LEAST_CHANGE, digits=0)} more"
        return Sizing.FITS, f"{words}, and {near}", None
    least = ". A quota throttled its clients while they were recorded, so they may need more" if use.was_throttled else ""
    return Sizing.RAISE, f"{words}{least}", value


def _unused(words: str, missing: str | None) -> Judgement:
    return (Sizing.UNUSED, words, None) if missing is None else (Sizing.INCONCLUSIVE, f"{words}, but {missing}", None)


def _without_traffic(
    use: QuotaUse, history: Provenance, rules: SizingRules, *, of_default: bool, missing: str | None
) -> Judgement:
    if use.unused is None:
        return Sizing.NOT_CHECKED, use.doubt or "this source records nothing that the key limits", None
    overridden = use.unused is NotJudged.OVERRIDDEN
    words = "stronger quotas override it for every recorded client" if overridden else "no recorded client uses it"
    if of_default:
        return Sizing.FITS, f"{words}. A default limits clients that come later", None
    days = count_of(int(history.days), "day")
    if history.days < rules.days:
        return Sizing.INCONCLUSIVE, f"{words} in {days}, and {rules.days} days decide", None
    return _unused(f"{words} in {days}", missing)


def _doubt_to_lower(use: QuotaUse, history: Provenance) -> str | None:
    """Return why a limit with little use stays as it is; ``None``: it can be lowered."""
    if use.was_throttled:
        return "a quota throttled its clients in this history, which does not show how much they would have sent"
    if history.end - history.start < WEEKS:
        return f"the history covers {count_of(int(history.days), 'day')}, and two whole weeks decide"
    if use.first is None or use.last is None:
        return "the history does not show since when its clients send"
    if use.last - use.first < WEEKS:
        return f"the traffic is of {use.first:%Y-%m-%d} to {use.last:%Y-%m-%d} only, and two whole weeks decide"
    if history.end - use.last >= WEEKS:
        return f"no traffic was recorded since {use.last:%Y-%m-%d}"
    return use.doubt
