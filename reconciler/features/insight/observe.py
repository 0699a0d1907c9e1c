"""How near quota groups are to their limits at one moment."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import UsageError
from reconciler.features.insight.rate_sources import (
    LoadOptions,
    LoadReading,
    LoadSource,
    Samples,
    SeriesSamples,
    merge_series,
    open_load_source,
)
from reconciler.features.prometheus import trusted_reader
from reconciler.model import ClusterIdentity, Entity, EntityType, Message, QuotaKey, compose
from reconciler.resolution import Candidate, EffectiveQuotas, QuotaView, is_reserved
from reconciler.text import count_of
from reconciler.workflows import Sources, configured_server, names_of, read_client_names, read_trusted_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """A broker throttled the group within the last minute. ``mean_ms``: of its throttles. ``None``: not known.

    ``since``: the first sample that shows it. ``None``: not known. ``or_earlier``: no sample before that one is known.
    """

    mean_ms: float | None = None
    """Mean of the throttles of the last minute in milliseconds. ``None`` when not known."""
    since: datetime.datetime | None = None
    """Time of the first sample that shows the throttling, in UTC."""
    or_earlier: bool = False
    """True when no sample before that one is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrend:
    """By how much the rate changed in the last ``seconds``."""

    change: float
    """Rate now less rate before."""
    seconds: float
    """How long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoad:
    """One quota group on one broker. ``tags``: user, client-id or ip, as the group has them.

    ``limit`` is ``None`` where no quota limits the group. ``tokens``: of a mutation quota, negative in debt.
    """

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
    trend: RateTrend | None = None
    """How the rate changed. ``None`` when no earlier sample is known."""
    throttling: Throttling | None = None
    """Set when the broker throttled the group within the last minute."""
    tokens: float | None = None
    """Tokens left of a mutation quota, negative in debt. Absent when not known."""

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
class MutedConnections:
    """Connections that a broker does not read from now, because of one kind of quota."""

    broker: str
    """Id of the broker, or the address of its exporter."""
    key: QuotaKey
    """Quota key of the throttle."""
    connections: int
    """Number of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """All quota groups with a rate at a moment, the nearest to its limit first. ``at``: ``None`` without any sample."""

    cluster: ClusterIdentity
    """``None`` for what is not known."""
    at: datetime.datetime | None
    """Time of the newest sample, in UTC. ``None`` when there is none."""
    groups: tuple[GroupLoad, ...]
    """Quota groups that were asked for, the nearest to its limit first."""
    muted: tuple[MutedConnections, ...] = ()
    """Connections that brokers do not read from now."""
    notes: tuple[Message, ...] = field(default_factory=tuple)
    """Messages about the reading."""

    @property
    def limited(self) -> tuple[GroupLoad, ...]:
        """The groups with a limit."""
        return tuple(group for group in self.groups if group.limit is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLoad:
    """The groups of one owner. ``owner`` is ``None`` for those without one. ``worst``: the nearest to its limit."""

    owner: str | None
    """Name of the owner. ``None`` for groups without one."""
    groups: int
    """Quota groups with a limit."""
    above: int
    """Groups above --over, or above their limit."""
    throttled: int
    """Groups that a broker throttled within the last minute."""
    worst: GroupLoad


def by_owner(groups: Iterable[GroupLoad], *, above: float) -> tuple[OwnerLoad, ...]:
    """Owners of groups with limits, in the order of their worst groups. ``above``: the share from which groups are counted."""
    owned: dict[str | None, list[GroupLoad]] = {}
    for group in groups:
        if group.limit is not None:
            owned.setdefault(group.owner, []).append(group)
    loads = [
        OwnerLoad(
            owner=owner,
            groups=len(some),
            above=sum(group.is_above(above) for group in some),
            throttled=sum(group.throttling is not None for group in some),
            worst=max(some, key=lambda group: group.share or 0.0),
        )
        for owner, some in owned.items()
    ]
    return tuple(sorted(loads, key=lambda load: (-(load.worst.share or 0.0), load.owner is None, load.owner or "")))


_LEAST_SHARE: Final = 0.3
"""A group that reaches less of its limit in the last minute than this did not throttle anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoad:
    """A load, and its largest rate in the last minute."""

    load: GroupLoad
    peak: float


def attribute_throttles(loads: Sequence[MeasuredLoad]) -> list[GroupLoad]:
    """The loads with each throttle at the group whose limit explains it; where none does, it stays where it is shown."""
    made = [measured.load for measured in loads]
    for place, measured in enumerate(loads):
        if measured.load.throttling is None or _is_near(measured):
            continue
        target = next(_explaining(measured, loads), None)
        if target is None:
            continue
        moved = made[target].throttling or measured.load.throttling
        made[place] = replace(made[place], throttling=None)
        made[target] = replace(made[target], throttling=moved)
    return made


def _explaining(measured: MeasuredLoad, loads: Sequence[MeasuredLoad]) -> Iterator[int]:
    """The places of groups of the same client and broker that may have throttled in its place."""
    load = measured.load
    for place, other in enumerate(loads):
        same = other.load.broker == load.broker and _may_share_a_client(load.tags, other.load.tags)
        if not same or other.load.limit is None:
            continue
        if load.key is QuotaKey.REQUEST_PERCENTAGE and other.load.key is QuotaKey.CONTROLLER_MUTATION_RATE:
            yield place


def _is_near(measured: MeasuredLoad) -> bool:
    limit = math.inf if measured.load.limit is None else measured.load.limit
    return measured.peak >= limit * _LEAST_SHARE


def _may_share_a_client(tags: Mapping[str, str], others: Mapping[str, str]) -> bool:
    common = tags.keys() & others.keys()
    return bool(common) and all(tags[tag] == others[tag] for tag in common)


if TYPE_CHECKING:
    from reconciler.features.prometheus import MetricSeries
    from reconciler.model import LabelMatcher

_FRESH_S: Final = 150
"""A series whose last sample is older than that is gone; two scrapes of a minute and some delay are not."""
_TREND_S: Final = 60
_SHORTEST_TREND_S: Final = 5
_USER: Final = EntityType.USER.value
_CLIENT_ID: Final = EntityType.CLIENT_ID.value
_IP: Final = EntityType.IP.value

_GroupKey = tuple[int, QuotaKey, tuple[tuple[str, str], ...]]


class HeadroomReader:
    """Reads rates again and again against the limits of one state."""

    def __init__(self, view: QuotaView, owners: Mapping[Entity, str], source: LoadSource) -> None:
        """Raises ``UsageError`` where the brokers have a callback class, since no limit is known then."""
        if view.caveats.callback is not None:
            raise UsageError(f"headroom needs limits that are known: {view.caveats.callback}")
        self._view, self._owners, self._source = view, owners, source
        self._answers: Final[EffectiveQuotas] = view.answers()
        self._throttled: dict[_GroupKey, Throttling] = {}

    def read(self) -> Headroom:
        """The state of now. Raises ``TrafficError`` when there is no source, or nothing in it."""
        from reconciler.traffic import Measure

        reading = self._source.read()
        by_measure: dict[Measure, list[SeriesSamples]] = {measure: [] for measure in Measure}
        for row in merge_series(reading.series):
            by_measure[row.series.measure].append(row)
        rates = by_measure[Measure.RATE]
        now_s = max((row.samples[-1][0] for some in by_measure.values() for row in some if row.samples), default=None)
        notes = [*reading.notes, *_stale_brokers(reading, rates, now_s)]
        if now_s is None:
            notes.append(
                compose(
                    "The source has no series of a quota group. Without a quota, brokers count nothing: set one, or see {page}.",
                    page="docs/monitor.md",
                )
            )
            return Headroom(cluster=self._view.cluster, at=None, groups=(), notes=tuple(notes))
        throttles = {self._key(row): row for row in by_measure[Measure.THROTTLE_TIME]}
        tokens = {self._key(row): row.samples[-1][1] for row in by_measure[Measure.TOKENS] if row.samples}
        groups = attribute_throttles(
            [
                MeasuredLoad(
                    load=self._load(row, reading, throttles.get(self._key(row)), tokens.get(self._key(row)), now_s),
                    peak=max(value for at, value in row.samples if at > now_s - _FRESH_S and math.isfinite(value)),
                )
                for row in rates
                if row.samples and row.samples[-1][0] > now_s - _FRESH_S and math.isfinite(row.samples[-1][1])
            ]
        )
        muted = (
            MutedConnections(broker=_broker(row.series, reading), key=row.series.kind.key, connections=int(row.samples[-1][1]))
            for row in by_measure[Measure.QUEUE_SIZE]
            if row.samples and row.samples[-1][0] > now_s - _FRESH_S and row.samples[-1][1] > 0
        )
        if self._view.caveats.groups and any(map(is_reserved, self._view.entities)):
            notes.append(
                compose(
                    "The brokers have the plugin of groups. Members of a group share one limit, so brokers may throttle a member "
                    "whose own rate is far below it."
                )
            )
        if unlimited := sum(group.limit is None for group in groups):
            notes.append(compose("{groups} without a limit.", groups=count_of(unlimited, "quota group")))
        return Headroom(
            cluster=self._view.cluster,
            at=datetime.datetime.fromtimestamp(now_s, datetime.UTC),
            groups=tuple(sorted(groups, key=_order)),
            muted=tuple(sorted(muted, key=lambda connections: (connections.broker, connections.key))),
            notes=tuple(notes),
        )

    def close(self) -> None:
        """Give connections back."""
        self._source.close()

    def _load(
        self, row: SeriesSamples, reading: LoadReading, throttle: SeriesSamples | None, tokens: float | None, now_s: float
    ) -> GroupLoad:
        series = row.series
        candidate = self._limit(series)
        key = self._key(row)
        throttling = _throttling(throttle, now_s)
        if throttling is not None and throttling.or_earlier and (before := self._throttled.get(key)) is not None:
            throttling = replace(throttling, since=before.since, or_earlier=before.or_earlier)
        if throttling is None:
            self._throttled.pop(key, None)
        else:
            self._throttled[key] = throttling
        return GroupLoad(
            broker=_broker(series, reading),
            key=series.kind.key,
            tags=dict(key[2]),
            rate=row.samples[-1][1],
            limit=None if candidate is None else candidate.value,
            source=None if candidate is None else candidate.entity,
            level=None if candidate is None else candidate.level,
            owner=None if candidate is None else self._owners.get(candidate.entity),
            trend=_trend(row.samples),
            throttling=throttling,
            tokens=tokens,
        )

    def _limit(self, series: MetricSeries) -> Candidate | None:
        if series.ip is not None:
            return self._answers.addresses.winner(series.ip)
        resolver = self._answers.resolvers.get(series.kind.key.value)
        return None if resolver is None else resolver.limit_of_group(series.user, series.client_id)

    @staticmethod
    def _key(row: SeriesSamples) -> _GroupKey:
        series = row.series
        tags = ((_USER, series.user), (_CLIENT_ID, series.client_id), (_IP, series.ip))
        return series.broker, series.kind.key, tuple((tag, name) for tag, name in tags if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomRequest:
    """Which rates to read, as the command line has it. Without ``traffic``, ``spec.traffic`` of the Cluster manifest counts."""

    traffic: tuple[str, ...] = ()
    match: tuple[LabelMatcher, ...] = ()
    http_config: Path | None = None
    mapping: Path | None = None
    known_clients: Path | None = None


def open_headroom(sources: Sources, state: str, request: HeadroomRequest) -> HeadroomReader:
    """Read the limits of a state, and open the traffic.

    With a trusted reference, server, login, mapping and names are those of the reference. Raises ``ManifestError``,
    ``UsageError``, ``UntrustedError``, ``GitError``, ``FileAccessError``, ``TrafficError`` and ``BackendError``.
    """
    view = sources.view(state)
    spec, trusted = sources.cluster()
    options = LoadOptions(
        traffic=request.traffic,
        server=configured_server(spec, trusted),
        match=request.match,
        http_config=request.http_config,
        mapping=read_trusted_mapping(request.mapping, trusted),
        names=names_of(view.entities) | read_client_names(request.known_clients, trusted),
        read_file=trusted_reader(trusted),
    )
    return HeadroomReader(view, sources.owners(), open_load_source(options))


def observe(view: QuotaView, owners: Mapping[Entity, str], options: LoadOptions) -> Headroom:
    """The quota groups of a moment: rate, limit, and which quota sets it. Raises as ``HeadroomReader`` and its ``read``."""
    with contextlib.closing(HeadroomReader(view, owners, open_load_source(options))) as reader:
        return reader.read()


def _broker(series: MetricSeries, reading: LoadReading) -> str:
    return reading.brokers.get(series.broker, str(series.broker))


def _order(group: GroupLoad) -> tuple[float, str, str, str]:
    share = -1.0 if group.share is None else group.share
    return -share, str(group.tags), group.key.value, group.broker


def _trend(samples: Samples) -> RateTrend | None:
    """From about a minute ago until now."""
    at, value = samples[-1]
    older = [(then, before) for then, before in samples if at - then >= _TREND_S and math.isfinite(before)]
    then, before = older[-1] if older else samples[0]
    if at - then < _SHORTEST_TREND_S or not math.isfinite(before):
        return None
    return RateTrend(change=value - before, seconds=at - then)


def _throttling(times: SeriesSamples | None, now_s: float) -> Throttling | None:
    if times is None or not times.samples:
        return None
    if times.samples[-1][0] <= now_s - _FRESH_S or not times.samples[-1][1] > 0:
        return None
    since_s = times.samples[-1][0]
    or_earlier = True
    for at, value in reversed(times.samples):
        if not value > 0:
            or_earlier = False
            break
        since_s = at
    return Throttling(
        mean_ms=times.samples[-1][1], since=datetime.datetime.fromtimestamp(since_s, datetime.UTC), or_earlier=or_earlier
    )


def _stale_brokers(reading: LoadReading, rates: Sequence[SeriesSamples], now_s: float | None) -> list[Message]:
    """Brokers that had samples and have none now: what is on them is not known."""
    newest: dict[str, float] = {}
    for row in rates:
        if row.samples:
            broker = _broker(row.series, reading)
            newest[broker] = max(newest.get(broker, 0.0), row.samples[-1][0])
    return [
        compose(
            "Broker {broker} has no samples of the last {seconds} s. Its quota groups are left out.",
            broker=broker,
            seconds=round(now_s - at),
        )
        for broker, at in sorted(newest.items())
        if now_s is not None and at <= now_s - _FRESH_S
    ]
