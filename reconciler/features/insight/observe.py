"""The quota groups of a moment: rate, limit and who set it, since when a broker throttles them, and what is not shown."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from reconciler.errors import UsageError
from reconciler.features.insight.rate_sources import RateReading, RateRequest, Samples, configured_rates, read_rates
from reconciler.model import ClusterIdentity, Entity, EntityType, Message, QuotaKey, compose
from reconciler.resolution import EffectiveQuotas, QuotaView, is_reserved
from reconciler.text import count_of
from reconciler.workflows import Access, Intent, current_view, quota_reader, read_state

if TYPE_CHECKING:
    from reconciler.features.prometheus import MetricSeries

_FRESH_S: Final = 150
"""A series whose last sample is older than that is gone; two scrapes of a minute and some delay are not."""
_LEAST_SHARE: Final = 0.3
"""A group that reaches less of its limit in the last minutes than this did not throttle anything."""
_NO_SERIES: Final = "The source has no series of a quota group. Without a quota, brokers count nothing: set one, or see {page}."
_CONNECTIONS: Final = (
    "No source shows which addresses brokers delay by connection_creation_rate. A rate near its limit may be the one "
    "that brokers let through."
)
_GROUPS_PLUGIN: Final = (
    "The brokers have the plugin of groups. Members of a group share one limit, so brokers may throttle a member whose own rate "
    "is far below it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """A broker throttled the group within the last minute."""

    mean_ms: float
    """Mean of the throttles of the last minute in milliseconds."""
    since: datetime.datetime
    """Time of the first sample that shows the throttling, in UTC."""
    or_earlier: bool = False
    """True when no sample before that one is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoad:
    """One quota group on one broker. ``tags``: user, client-id or ip, as the group has them."""

    broker: str
    """Id of the broker, or the address of its exporter where no id is known."""
    key: QuotaKey
    """Quota key that limits the rate."""
    tags: Mapping[str, str]
    """Tags of the quota group: user, client-id or both, or an ip. A tag that the group does not have is absent."""
    rate: float
    """Rate at the moment, in the unit of the key. The text of a value that JSON has no number for."""
    limit: float | None = None
    """Limit. ``None`` when no quota limits the group."""
    source: Entity | None = None
    """Entity whose quota limits the group. ``None`` for a name is the default. ``None`` when no quota does."""
    level: int | None = None
    """Precedence level of the source, 1 is the strongest. ``None`` when no quota limits the group."""
    owner: str | None = None
    """Who declares the source in the manifests. ``None`` when not known."""
    throttling: Throttling | None = None
    """Set when the broker throttled the group within the last minute."""

    @property
    def share(self) -> float | None:
        """Rate divided by limit. ``None`` without a limit."""
        if self.limit is None:
            return None
        return self.rate / self.limit if self.limit > 0 else float("inf") if self.rate > 0 else 0.0

    def is_above(self, share: float) -> bool:
        """Whether the rate is above this share of the limit."""
        return self.share is not None and self.share > share


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedLimit:
    """A limit under which no quota group has any traffic at the moment, though the source shows traffic of its kind."""

    entity: Entity
    """Entity whose quota it is. ``None`` for a name is the default."""
    key: QuotaKey
    """Quota key."""
    limit: float
    """The limit, in the unit of its key."""
    owner: str | None = None
    """Who declares it in the manifests. ``None`` when not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """All quota groups with a rate at a moment, the nearest to its limit first. ``at``: ``None`` without any sample."""

    cluster: ClusterIdentity
    """``None`` for what is not known."""
    at: datetime.datetime | None
    """Time of the newest sample, in UTC. ``None`` when there is none."""
    groups: tuple[GroupLoad, ...]
    """Quota groups that were asked for, the nearest to its limit first."""
    unused: tuple[UnusedLimit, ...] = ()
    """Limits without traffic at the moment."""
    notes: tuple[Message, ...] = field(default_factory=tuple)
    """Messages about the reading."""
    shown_until: Mapping[str, float] = field(default_factory=dict)
    """By page, or by broker where a server or files are read, up to when they show what there is, in seconds since 1970."""
    shows_throttles: bool = True
    """Whether the source has throttle times where it has rates."""


def observe(view: QuotaView, owners: Mapping[Entity, str], rates: RateRequest) -> Headroom:
    """The quota groups of this moment: rates of a source, joined with the limits of ``view``.

    ``owners``: who declares quotas. Raises as ``read_rates`` or ``observe_recorded``, and ``UsageError`` where the brokers
    have a callback class, since no limit is known then.
    """
    if view.caveats.callback is not None:
        raise UsageError(f"headroom needs limits that are known: {view.caveats.callback}")
    if rates.is_recorded:
        from reconciler.features.insight.recorded_rates import observe_recorded

        return observe_recorded(view, owners, rates)
    return join_limits(view, owners, read_rates(rates))


def observe_cluster(intent: Intent, access: Access) -> Headroom:
    """The quota groups of the cluster of an intent, by its own connection and ``spec.traffic``.

    Raises as ``quota_reader``, ``read_state`` and ``observe``.
    """
    with quota_reader(intent.spec, access, trusted=intent.trusted) as reader:
        state = read_state(intent.spec, reader)
        view = current_view(state, source=reader, name=intent.spec.name, spec=intent.spec)
    declared = intent.desired.entities.values()
    owners = {entity.entity: entity.owner for entity in declared if entity.owner is not None}
    return observe(view, owners, configured_rates(intent.spec, intent.trusted))


def join_limits(view: QuotaView, owners: Mapping[Entity, str], reading: RateReading) -> Headroom:
    """The quota groups that samples show, with their limits."""
    from reconciler.traffic import Measure

    by_measure: dict[Measure, dict[MetricSeries, Samples]] = {measure: {} for measure in Measure}
    for series, samples in reading.series.items():
        by_measure[series.measure][series] = samples
    now_s = max((samples[-1][0] for samples in reading.series.values()), default=None)
    if now_s is None:
        note = compose(_NO_SERIES, page="kafka-quotas explain monitor")
        return Headroom(cluster=view.cluster, at=None, groups=(), notes=(*reading.notes, note), shown_until=reading.pages)
    oldest_s, answers = now_s - _FRESH_S, view.answers()
    throttles = {_place(series): samples for series, samples in by_measure[Measure.THROTTLE_TIME].items()}
    tokens = {_place(series): samples for series, samples in by_measure[Measure.TOKENS].items()}
    measured = []
    for series, samples in by_measure[Measure.RATE].items():
        at, rate = samples[-1]
        if at > oldest_s and math.isfinite(rate):
            names = series.user, series.client_id, series.ip
            load = limited_load(answers, owners, broker=_broker(series, reading), key=series.kind.key, names=names, rate=rate)
            throttling = _throttling(throttles.get(_place(series), ()), oldest_s)
            if throttling is None and load.limit:
                throttling = _throttling(_debts_ms(tokens.get(_place(series), ()), load.limit), oldest_s)
            peak = max(value for at, value in samples if at > oldest_s and math.isfinite(value))
            measured.append((replace(load, throttling=throttling), peak))
    newest = _newest(reading, by_measure[Measure.RATE])
    notes = [*reading.notes, *_stale_brokers(newest, now_s)]
    return replace(
        headroom_of(view, owners, pass_on_throttles(measured), notes, at_s=now_s),
        shown_until=reading.pages or newest,
        shows_throttles=bool(throttles) or not measured,
    )


def headroom_of(
    view: QuotaView, owners: Mapping[Entity, str], groups: Sequence[GroupLoad], notes: Sequence[Message], *, at_s: float
) -> Headroom:
    """The quota groups of a moment in their order, with what is to be known beside them. ``at_s``: seconds since 1970."""
    more = []
    if any(group.key is QuotaKey.CONNECTION_CREATION_RATE and group.limit is not None for group in groups):
        more.append(compose(_CONNECTIONS))
    if view.caveats.groups and any(map(is_reserved, view.entities)):
        more.append(compose(_GROUPS_PLUGIN))
    if unlimited := sum(group.limit is None for group in groups):
        more.append(compose("{groups} without a limit.", groups=count_of(unlimited, "quota group")))
    return Headroom(
        cluster=view.cluster,
        at=datetime.datetime.fromtimestamp(at_s, datetime.UTC),
        groups=tuple(sorted(groups, key=_nearness)),
        unused=tuple(_unused_limits(view, owners, groups)),
        notes=(*notes, *more),
    )


def nearest_first(loads: Iterable[tuple[Headroom, GroupLoad]]) -> tuple[tuple[Headroom, GroupLoad], ...]:
    """The quota groups of several clusters, each with its cluster, the nearest to its limit first."""
    return tuple(sorted(loads, key=lambda pair: (_nearness(pair[1]), pair[0].cluster.name or "")))


def _nearness(load: GroupLoad) -> tuple[float, str, str, str]:
    return 1.0 if load.share is None else -load.share, str(load.tags), load.key.value, load.broker


def _unused_limits(view: QuotaView, owners: Mapping[Entity, str], groups: Sequence[GroupLoad]) -> Iterator[UnusedLimit]:
    """The limits without traffic, of keys whose traffic the source shows."""
    used = {(group.source, group.key) for group in groups if group.rate > 0}
    shown = {group.key for group in groups}
    for entity in sorted(view.entities, key=lambda entity: entity.sort_key):
        for name, value in view.entities[entity].items():
            key = next((key for key in shown if key.value == name), None)
            if key is not None and (entity, key) not in used and math.isfinite(value) and not is_reserved(entity):
                yield UnusedLimit(entity=entity, key=key, limit=value, owner=owners.get(entity))


def _place(series: MetricSeries) -> tuple[object, ...]:
    return series.broker, series.kind.key, series.user, series.client_id, series.ip


def limited_load(
    answers: EffectiveQuotas,
    owners: Mapping[Entity, str],
    *,
    broker: str,
    key: QuotaKey,
    names: tuple[str | None, str | None, str | None],
    rate: float,
) -> GroupLoad:
    """A quota group on a broker with its limit. ``names``: user, client-id and address, as far as the group has them."""
    user, client_id, ip = names
    if ip is not None:
        candidate = answers.addresses.winner(ip)
    else:
        resolver = answers.resolvers.get(key.value)
        candidate = None if resolver is None else resolver.limit_of_group(user, client_id)
    tags = {EntityType.USER.value: user, EntityType.CLIENT_ID.value: client_id, EntityType.IP.value: ip}
    load = GroupLoad(broker=broker, key=key, tags={tag: name for tag, name in tags.items() if name}, rate=rate)
    if candidate is None:
        return load
    source = candidate.entity
    return replace(load, limit=candidate.value, source=source, level=candidate.level, owner=owners.get(source))


def pass_on_throttles(measured: Sequence[tuple[GroupLoad, float]]) -> list[GroupLoad]:
    """The loads with each throttle at the group whose limit explains it; where none does, it stays where it is shown.

    Brokers book throttles of mutations as those of request time. So a group far below its limit that shows a throttle passes it
    on to the mutation quota of the same client. ``measured``: loads, and the largest rate of the last minutes.
    """
    made = [load for load, _ in measured]
    for place, (load, peak) in enumerate(measured):
        is_near = peak >= (math.inf if load.limit is None else load.limit * _LEAST_SHARE)
        if load.throttling is None or is_near or load.key is not QuotaKey.REQUEST_PERCENTAGE:
            continue
        for target, (other, _) in enumerate(measured):
            if (
                other.key is QuotaKey.CONTROLLER_MUTATION_RATE
                and other.limit is not None
                and other.broker == load.broker
                and load.tags.keys() & other.tags.keys()
                and all(other.tags.get(tag, name) == name for tag, name in load.tags.items())
            ):
                made[place] = replace(made[place], throttling=None)
                made[target] = replace(made[target], throttling=made[target].throttling or load.throttling)
                break
    return made


def _broker(series: MetricSeries, reading: RateReading) -> str:
    return reading.brokers.get(series.broker, str(series.broker))


def _debts_ms(tokens: Samples, limit: float) -> Samples:
    """Return the milliseconds in which a debt of tokens is paid, which answers state as throttles. NaN without a debt."""
    return tuple((at, -value / limit * 1000 if value < 0 else math.nan) for at, value in tokens)


def _throttling(times: Samples, oldest_s: float) -> Throttling | None:
    """``times``: of throttles; NaN where none was in the minute before."""
    if not times or times[-1][0] <= oldest_s or not times[-1][1] > 0:
        return None
    started = next((place for place in range(len(times), 0, -1) if not times[place - 1][1] > 0), 0)
    since = datetime.datetime.fromtimestamp(times[started][0], datetime.UTC)
    return Throttling(mean_ms=times[-1][1], since=since, or_earlier=started == 0)


def _newest(reading: RateReading, rates: Mapping[MetricSeries, Samples]) -> dict[str, float]:
    """Return by broker the time of its newest rate, in seconds since 1970."""
    newest: dict[str, float] = {}
    for series, samples in rates.items():
        broker = _broker(series, reading)
        newest[broker] = max(newest.get(broker, 0.0), samples[-1][0])
    return newest


def _stale_brokers(newest: Mapping[str, float], now_s: float) -> Iterator[Message]:
    """Brokers that had samples and have none now: what is on them is not known."""
    for broker, at in sorted(newest.items()):
        if at <= now_s - _FRESH_S:
            yield compose(
                "Broker {broker} has no samples of the last {seconds} s. Its quota groups are left out.",
                broker=broker,
                seconds=round(now_s - at),
            )
