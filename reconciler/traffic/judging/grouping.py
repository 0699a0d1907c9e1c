"""Which recorded series are replayed together: one group for each bucket, under the quotas before and after a change.

Pure, and on the driver: it sees distinct series, never requests. A bucket whose members are the same before and after is
replayed once for both limits; others are replayed in their own group on each side.

Who sent something need not be known whole. A series whose quota depends on what is not known is in a target of its own that
nothing is reported of, and every bucket that it may belong to is marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from reconciler.model import CLIENT_KEYS, BucketName, LeaderSpread, RowPlace
from reconciler.resolution import ADDRESS_KEY, AddressLimits, BrokerLimits, LimitLookup, QuotaTable, Resolved, Resolver, TagGroups
from reconciler.traffic.kinds import Kind

Limits: TypeAlias = LimitLookup | BrokerLimits | AddressLimits
Tables: TypeAlias = Mapping[str, Limits]
"""By quota key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One client's requests of one kind on one broker. ``key``: a number that is unique in the traffic.

    A ``user`` or ``client_id`` of ``None`` is not known; an empty client id is really empty. Connections have an ``ip``, and
    neither user nor client id.
    """

    broker: int
    kind: Kind
    user: str | None
    client_id: str | None
    requests: int
    amount: int
    key: int = 0
    ip: str | None = None
    """The address of connections; ``None``: not known, or of another kind."""
    largest: int = 0
    """The most record bytes of one request."""
    throttled: int = 0
    """Requests that were throttled when they were recorded."""
    has_tags: bool = False
    """Whether its names are the tags of a quota group, as those of a broker's own rates are. An absent name is an absent tag."""
    unplaced: int = 0
    """Requests that were not charged: those whose local time there was twice, or never, when the clocks were changed."""
    uncounted: int = 0
    """Topics of mutations that were not charged: how many partitions they had is not known."""
    start_us: int | None = None
    """When the first charged request was. ``None``: there is none, or it is not known. ``end_us``: the last one."""
    end_us: int | None = None

    @property
    def sort_key(self) -> tuple[int | str, ...]:
        """The order of series: broker, kind, user, client-id and address. What is not known comes first."""
        names = (self.user, self.client_id, self.ip)
        return self.broker, self.kind.value, *(part for name in names for part in (name is not None, name or ""))


class Side(NamedTuple):
    """Under which limit a group is replayed on one side of the change; ``None`` is unlimited."""

    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bucket of the proposed quotas on one broker: one row of the report. ``members`` are indexes of series."""

    broker: int
    kind: Kind
    bucket: BucketName
    after: Resolved
    members: tuple[int, ...]
    undecided: bool = False
    """Who sent this is not known well enough to state which quota applies."""
    may_have: int = 0
    """How many series of undecided targets may belong here too."""
    reconsidered: bool = False
    """Of an undecided target: the change is about a quota that may be theirs."""

    @property
    def place(self) -> RowPlace:
        """The key that identifies its row in a report."""
        return RowPlace(self.kind.key.value, self.broker, self.bucket, self.undecided)


@dataclass(frozen=True, slots=True)
class Group:
    """What one worker replays at a time. ``before`` and ``after`` are ``None`` when the group is not of that side."""

    kind: Kind
    before: Side | None
    after: Side | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Targets by index; groups by index, first those of the targets; then by series its groups, target, and quotas.

    A quota of ``None`` is not decided, or, before the change, not known.
    """

    targets: tuple[Target, ...]
    groups: tuple[Group, ...]
    groups_of_series: tuple[tuple[int, ...], ...]
    before_of_series: tuple[Resolved | None, ...]
    after_of_series: tuple[Resolved | None, ...]


def group_series(series: Sequence[Series], before: Tables | None, after: Tables) -> Grouping:
    """Group series by the quotas before and after a change.

    ``before``: ``None`` when the earlier quotas are not known. Then no group has a side ``before``.
    """
    before_of: list[Resolved | None] = [None] * len(series) if before is None else _resolved(series, before)
    after_of = _resolved(series, after)
    tagged = [index for index, client in enumerate(series) if client.has_tags]
    if before is not None and tagged:
        resolve_tags = _ResolvingTags(before, after)
        for index in tagged:
            if (both_sides := resolve_tags(series[index])) is not None:
                before_of[index], after_of[index] = both_sides
    targets = _targets(series, before, after, after_of)
    earlier = {members: place for place, members in _members(series, before_of).items()}
    after_of_members: dict[tuple[int, ...], Resolved | None] = {target.members: target.after for target in targets}
    groups: list[Group] = []
    made: dict[Group, Group] = {}
    groups_of: list[list[int]] = [[] for _ in series]
    for members in (*after_of_members, *sorted(earlier.keys() - after_of_members.keys())):
        sides = (before_of[members[0]] if members in earlier else None, after_of_members.get(members))
        group = Group(series[members[0]].kind, *(None if side is None else Side(side.value) for side in sides))
        # Groups of few different limits, each made once.
        groups.append(made.setdefault(group, group))
        for member in members:
            groups_of[member].append(len(groups) - 1)
    return Grouping(
        targets=targets,
        groups=tuple(groups),
        groups_of_series=tuple(tuple(g) for g in groups_of),
        before_of_series=tuple(before_of),
        after_of_series=tuple(after_of),
    )


def rows_of_groups(series: Sequence[Series], grouping: Grouping, groups: Collection[int]) -> list[int]:
    """The expected number of rows of each group, by group number; 0 for groups that are not in ``groups``."""
    rows = [0] * len(grouping.groups)
    for client, of_one in zip(series, grouping.groups_of_series, strict=True):
        for group in of_one:
            if group in groups:
                rows[group] += client.requests
    return rows


def groups_before(grouping: Grouping, target: int) -> tuple[int, ...]:
    """The groups, by number, of a target's members before the change: its own, or those from which it was put together."""
    if grouping.groups[target].before is not None:
        return (target,)
    candidates = {group for member in grouping.targets[target].members for group in grouping.groups_of_series[member]}
    return tuple(sorted(group for group in candidates if grouping.groups[group].before is not None))


def _resolved(series: Sequence[Series], tables: Tables) -> list[Resolved | None]:
    """Return the effective quotas, looked up once for each client: most are on every broker.

    ``None``: what is known of the client does not decide it.
    """
    known: dict[tuple[Kind, int | None, str | None, str | None, str | None], Resolved | None] = {}
    quotas = []
    for client in series:
        limits, broker = tables[client.kind.key], None
        if isinstance(limits, BrokerLimits):
            limits, broker = limits.at(client.broker), client.broker
        place = client.kind, broker, client.user, client.client_id, client.ip
        if place not in known:
            known[place] = resolve_series(limits, client)
        quotas.append(known[place])
    return quotas


class _ResolvingTags:
    """The quotas of groups that are known by one tag, before and after a change."""

    def __init__(self, before: Tables, after: Tables) -> None:
        self._before, self._after = before, after
        self._groups: dict[Kind, TagGroups | None] = {}
        self._known: dict[tuple[Kind, str | None, str | None], tuple[Resolved, Resolved | None] | None] = {}

    def __call__(self, series: Series) -> tuple[Resolved, Resolved | None] | None:
        """Return the quotas before and after. ``None``: one client, or no group before. ``None`` after: the change splits it."""
        user, client_id = series.user or None, series.client_id or None
        if (user is None) == (client_id is None):
            return None
        place = series.kind, user, client_id
        if place not in self._known:
            self._known[place] = self._resolved(series.kind, user, client_id)
        return self._known[place]

    def _resolved(self, kind: Kind, user: str | None, client_id: str | None) -> tuple[Resolved, Resolved | None] | None:
        before, after = self._before[kind.key], self._after[kind.key]
        if not isinstance(before, Resolver) or not isinstance(after, Resolver):
            return None
        if kind not in self._groups:
            self._groups[kind] = TagGroups(before, after) if before.enabled else None
        groups = self._groups[kind]
        if groups is None or not groups.exists(user, client_id):
            return None
        bucket = BucketName(user=user or "", client_id=client_id or "")
        earlier = Resolved(bucket=bucket, winner=before.limit_of_group(user, client_id))
        if not groups.stays(user, client_id):
            return earlier, None
        return earlier, Resolved(bucket=bucket, winner=after.limit_of_group(user, client_id))


def resolve_series(limits: LimitLookup | AddressLimits, series: Series) -> Resolved | None:
    """The quota that applies to a series; ``None``: what is known of the client does not decide it."""
    if isinstance(limits, AddressLimits):
        return None if series.ip is None else limits.resolve(series.ip)
    if series.user is not None and series.client_id is not None:
        return limits.resolve(series.user, series.client_id)
    # A callback may look at any letter of a name.
    return limits.resolve_partly(series.user, series.client_id) if isinstance(limits, Resolver) else None


def _targets(
    series: Sequence[Series], before: Tables | None, after: Tables, after_of: Sequence[Resolved | None]
) -> tuple[Target, ...]:
    undecided = [index for index, quota in enumerate(after_of) if quota is None]
    known_in_part = _KnownInPart([series[index] for index in undecided]) if undecided else None
    targets = []
    for (broker, kind, bucket), members in sorted(_members(series, after_of).items()):
        resolved = after_of[members[0]]
        assert resolved is not None
        may_have = 0 if known_in_part is None else known_in_part.may_be_in(broker, kind, bucket)
        targets.append(Target(broker=broker, kind=kind, bucket=bucket, after=resolved, members=members, may_have=may_have))
    for index in undecided:
        client = series[index]
        bucket = BucketName(user=client.user or "", client_id=client.client_id or "")
        targets.append(
            Target(
                broker=client.broker,
                kind=client.kind,
                bucket=bucket,
                after=Resolved(bucket=bucket),
                members=(index,),
                undecided=True,
                reconsidered=before is None or _candidates(before, client) != _candidates(after, client),
            )
        )
    return tuple(targets)


def _candidates(limits: Tables, client: Series) -> object:
    """Return what may decide about a client. For a callback, which can look at anything, it equals nothing else."""
    lookup = limits[client.kind.key]
    return lookup.touches(client.user, client.client_id) if isinstance(lookup, Resolver) else lookup


class _KnownInPart:
    """Series that lack a user or a client id, counted by what is known of them; ``None`` counts all of them."""

    def __init__(self, undecided: Sequence[Series]) -> None:
        self._of_user: Counter[tuple[int, Kind, str | None]] = Counter()
        self._of_client: Counter[tuple[int, Kind, str | None]] = Counter()
        self._of_nobody: Counter[tuple[int, Kind]] = Counter()
        for client in undecided:
            if client.user is not None:
                self._of_user.update({(client.broker, client.kind, client.user), (client.broker, client.kind, None)})
            elif client.client_id is not None:
                self._of_client.update({(client.broker, client.kind, client.client_id), (client.broker, client.kind, None)})
            else:
                self._of_nobody[client.broker, client.kind] += 1

    def may_be_in(self, broker: int, kind: Kind, bucket: BucketName) -> int:
        """Count them: a known name is the bucket's, or the bucket asks for none. Other tags may be those of any client."""
        user, client_id = (None, None) if bucket.other else (bucket.user or None, bucket.client_id or None)
        known = self._of_user[broker, kind, user] + self._of_client[broker, kind, client_id]
        return known + self._of_nobody[broker, kind]


def _members(
    series: Sequence[Series], resolved: Sequence[Resolved | None]
) -> dict[tuple[int, Kind, BucketName], tuple[int, ...]]:
    members_of: dict[tuple[int, Kind, BucketName], list[int]] = {}
    for index, (client, result) in enumerate(zip(series, resolved, strict=True)):
        if result is not None:
            members_of.setdefault((client.broker, client.kind, result.bucket), []).append(index)
    return {place: tuple(members) for place, members in members_of.items()}


AskCallback: TypeAlias = Callable[[QuotaTable, LeaderSpread | None, Collection[int]], Mapping[str, BrokerLimits]]
"""The limits of a quota callback by key, from quotas, the leaders that it gets, and ids of brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRule:
    """How the brokers find a client's quota."""

    callback: AskCallback | None = None
    """``None``: Kafka's own eight levels."""
    callback_name: str = ""
    remembers_kinds: bool | None = None
    """Whether brokers keep in mind which kinds of quota they ever had, as those before 4.2 do; ``None``: not known."""
    leaders: LeaderSpread | None = None
    """Leaders of partitions that the callback gets; ``None``: it gets none."""

    def assumptions(self, *, is_unlimited: bool) -> Iterator[str]:
        """Yield what a report has to state about it. ``is_unlimited``: some quota group has no limit."""
        if self.callback is not None:
            knows = (
                "does not know which broker leads which partition"
                if self.leaders is None
                else "knows the leaders of partitions as they are now, not those of the history"
            )
            yield (
                f"the class {self.callback_name} decides who shares which limit. The brokers' own "
                f"client.quota.callback.class was not asked, and this class {knows}"
            )
            return
        yield "the quota callback is Kafka's own"
        if self.remembers_kinds is not False and is_unlimited:
            who = "brokers before 4.2 (these have no known version)" if self.remembers_kinds is None else "these brokers"
            yield (
                f"{who} remember kinds of quotas that were removed since they started, which no snapshot shows. Clients without "
                "a limit may be in other quota groups than here. No limit depends on it"
            )


def quota_tables(
    current: QuotaTable | None, proposed: QuotaTable, rule: BrokerRule, brokers: Collection[int], kinds: Collection[Kind]
) -> tuple[Tables | None, Tables]:
    """Return the tables before (``None``: not known) and after, for traffic of these kinds.

    Raises ``QuotaCallbackError`` as the callback does.
    """
    if rule.callback is not None:
        before = None if current is None else _by_callback(rule, rule.callback, current, brokers)
        return before, _by_callback(rule, rule.callback, proposed, brokers)
    after = Resolver.by_key(proposed, CLIENT_KEYS)
    earlier = None if current is None else Resolver.by_key(current, CLIENT_KEYS)
    if earlier is not None and rule.remembers_kinds:
        after = {key: table.remembering(earlier[key]) for key, table in after.items()}
    if Kind.CONNECTION not in kinds:
        return earlier, after
    return (
        None if earlier is None or current is None else {**earlier, ADDRESS_KEY: AddressLimits(current)},
        {**after, ADDRESS_KEY: AddressLimits(proposed)},
    )


def _by_callback(rule: BrokerRule, callback: AskCallback, quotas: QuotaTable, brokers: Collection[int]) -> Tables:
    return {**callback(quotas, rule.leaders, brokers), ADDRESS_KEY: AddressLimits(quotas)}
