"""Groups of one cluster as entities: one shared limit where brokers have the plugin, otherwise an equal part for each member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from reconciler.manifest.documents import QuotaEntry, QuotaGroup
from reconciler.manifest.limits import ClusterManifests, Entities, Stage
from reconciler.manifest.profiles import settle_entity
from reconciler.manifest.reading import finding
from reconciler.manifest.units import round_down
from reconciler.model import (
    ClusterSpec,
    DesiredEntity,
    DesiredQuota,
    Entity,
    EntityType,
    Finding,
    GroupPart,
    Message,
    Proportional,
    QuotaKey,
    Related,
    Span,
    UnitQuota,
    compose,
    display_name,
    flag_part,
    key_part,
)
from reconciler.resolution import (
    GROUP_CALLBACK,
    LONGEST_PREFIX,
    GroupLimit,
    GroupMember,
    MemberKind,
    ProportionalTotal,
    is_reserved,
    reserved_entity,
    stored_rule,
)
from reconciler.text import amount_part, count_of, shown_part

_MARK: Final = QuotaKey.REQUEST_PERCENTAGE, 100.0
"""Kafka stores no entity without a value. The value of a member has no weight."""
_TYPES: Final = {
    MemberKind.USER: EntityType.USER, MemberKind.USER_PREFIX: EntityType.USER,
    MemberKind.CLIENT_ID: EntityType.CLIENT_ID, MemberKind.CLIENT_ID_PREFIX: EntityType.CLIENT_ID,
}  # fmt: skip


def member_entries(groups: Iterable[QuotaGroup]) -> Iterator[QuotaEntry]:
    """The users and client-ids that groups limit, as if each had an entry: for the rules of owners."""
    for group in groups:
        for (kind, name), source in group.members.items():
            yield QuotaEntry(declared=replace(group.limits, entity=_entity(kind, name), source=source))


class GroupEntities:
    """The groups of one cluster. Declares them beside ``entities``, and collects what is wrong with them."""

    def __init__(self, entities: dict[Entity, DesiredEntity], *, plugin: bool) -> None:
        """``plugin``: the brokers have the plugin of groups."""
        self._entities = entities
        self._own = dict(entities)
        self._plugin = plugin
        self._groups: dict[str, QuotaGroup] = {}
        self._members: dict[tuple[MemberKind, str], tuple[str, Span]] = {}
        self.findings: list[Finding] = []

    def declare(self, group: QuotaGroup) -> tuple[DesiredEntity, ...]:
        """Declare a group, and return what it declares."""
        first = self._groups.setdefault(group.name, group)
        if first is not group:
            words = "group {group} is already declared. Give one of them another name"
            related = "the first declaration", first.limits.source
            self._add("duplicate-group", words, group.limits.source, related, group=group.name)
            return ()
        members = {member: span for member, span in group.members.items() if self._is_free(group, member, span)}
        prefix = next((span for (kind, _), span in members.items() if kind.is_prefix), None)
        if prefix is not None and not self._plugin:
            words = (
                "group {group} has prefixes, which only brokers with the plugin of groups can match. List the names, or set "
                "{line} in the Cluster manifest"
            )
            line = flag_part(f"spec.quotaCallback.class: {GROUP_CALLBACK}")
            self._add("group-needs-plugin", words, prefix, group=group.name, line=line)
            return ()
        members = {member: span for member, span in members.items() if self._is_short(group, member, span)}
        self.findings += self._with_own_quota(group, members)
        declared = tuple(self._shared(group, members) if self._plugin else self._divided(group, members))
        self._entities.update((each.entity, each) for each in declared)
        return declared

    def _is_free(self, group: QuotaGroup, member: tuple[MemberKind, str], span: Span) -> bool:
        name, first = self._members.setdefault(member, (group.name, span))
        if name == group.name:
            return True
        words = "{member} is in the groups {first} and {second}. Remove it from one of them"
        related = "the first group", first
        self._add("member-of-two-groups", words, span, related, member=_entity(*member), first=name, second=group.name)
        return False

    def _is_short(self, group: QuotaGroup, member: tuple[MemberKind, str], span: Span) -> bool:
        kind, name = member
        if kind.takes(name):
            return True
        words = "group {group} has a prefix of {length} characters, and brokers match at most {longest}. Shorten the prefix"
        self._add("group-prefix-too-long", words, span, group=group.name, length=len(name), longest=LONGEST_PREFIX)
        return False

    def _shared(self, group: QuotaGroup, members: Mapping[tuple[MemberKind, str], Span]) -> Iterator[DesiredEntity]:
        """Yield the entities that the plugin reads for a group: one with its limits, and one for each member."""
        yield group.limits
        key, value = _MARK
        for (kind, name), span in members.items():
            entity = reserved_entity(GroupMember(group=group.name, kind=kind, name=name))
            mark = DesiredQuota(value=value, source=span, text="member")
            note = group.limits.note or f"Member of group {group.name}"
            yield DesiredEntity(entity=entity, quotas={key: mark}, source=span, owner=group.limits.owner, note=note)

    def _divided(self, group: QuotaGroup, members: Mapping[tuple[MemberKind, str], Span]) -> Iterator[DesiredEntity]:
        """An equal part of each limit for each member, but for keys of which a member has a quota of its own."""
        parts = {key: part for key, quota in group.limits.quotas.items() if (part := self._part(group, key, quota, len(members)))}
        units = {key: _unit_part(quota, len(members)) for key, quota in group.limits.units.items()}
        for (kind, name), span in members.items():
            entity = _entity(kind, name)
            own = self._own.get(entity)
            if own is not None:
                taken = own.quotas.keys() | own.units.keys()
                quotas = {**{key: part for key, part in parts.items() if key not in taken}, **own.quotas}
                units_left = {key: unit for key, unit in units.items() if key not in taken}
                expiries = {key: each for key, each in group.limits.expiries.items() if key not in taken} | {**own.expiries}
                yield replace(own, quotas=quotas, units={**units_left, **own.units}, expiries=expiries)
            else:
                yield replace(group.limits, entity=entity, quotas=parts, units=units, source=span)

    def _part(self, group: QuotaGroup, key: QuotaKey, quota: DesiredQuota, members: int) -> DesiredQuota | None:
        value = round_down(key, Fraction(quota.value) / members)
        if value is not None:
            return quota._replace(value=value, unit=GroupPart(group=group.name, members=members, limit=quota.value))
        words = "{limit} of {quota} is too little for {members} members of group {group}: each needs at least {least}"
        limit, least = amount_part(key.value, quota.value), amount_part(key.value, 1.0)
        names: dict[str, Any] = {"quota": key_part(key.value), "members": members, "group": group.name}
        self._add("part-too-small", words, quota.source, limit=limit, least=least, **names)
        return None

    def _with_own_quota(self, group: QuotaGroup, members: Mapping[tuple[MemberKind, str], Span]) -> Iterator[Finding]:
        """Members that a quota of their own takes out of the group."""
        keys = group.limits.quotas.keys() | group.limits.units.keys()
        for (kind, name), span in members.items():
            entity = _entity(kind, name)
            own = self._own.get(entity) if not kind.is_prefix else None
            for key in sorted(keys & (own.quotas.keys() | own.units.keys())) if own is not None else ():
                message = compose(
                    "{entity} has a {key} of its own, which decides before the limit of group {group}, and {effect}",
                    entity=entity,
                    key=key_part(key.value),
                    group=shown_part(group.name),
                    effect="shares nothing with the group" if self._plugin else "gets no part of that limit",
                )
                related = [Related(span=own.source, message="the quota of its own")] if own is not None else []
                yield finding("member-with-own-quota", message, span, related=related, entity=entity, key=key.value)

    def _add(self, rule_id: str, message: str, span: Span, related: tuple[str, Span] | None = None, **names: Any) -> None:
        places = [Related(span=related[1], message=related[0])] if related is not None else []
        self.findings.append(finding(rule_id, message, span, related=places, **names))


def _entity(kind: MemberKind, name: str) -> Entity:
    return Entity.of({_TYPES[kind].value: name})


def _totals(declared: DesiredEntity, key: QuotaKey, quota: UnitQuota, unit: Proportional) -> Iterator[DesiredEntity]:
    rule = stored_rule(declared.entity) if is_reserved(declared.entity) else None
    subject = rule.group if isinstance(rule, GroupLimit) else declared.entity
    total = DesiredQuota(value=unit.value, source=quota.source, text=quota.text, profile=quota.profile)
    for topic in unit.topics or (None,):
        entity = reserved_entity(ProportionalTotal(subject=subject, topic=topic))
        yield DesiredEntity(entity=entity, quotas={key: total}, source=quota.source, owner=declared.owner, note=declared.note)


def _unit_part(quota: UnitQuota, members: int) -> UnitQuota:
    """A total of the cluster, of one member."""
    return replace(quota, unit=replace(quota.unit, value=quota.unit.value / members))


def _declare(manifests: ClusterManifests, entities: Entities) -> list[Finding]:
    """Declare the groups beside the entries, whose quotas decide before those of groups."""
    cluster = manifests.cluster
    groups = GroupEntities(entities, plugin=_has_plugin(cluster))
    declared = [
        each
        for document in manifests.documents
        for group in document.groups
        for each in groups.declare(replace(group, limits=settle_entity(group.limits, manifests.at)))
    ]
    outside = [outside_scope(each, cluster) for each in declared if not cluster.scope.contains(each.entity)]
    return [*groups.findings, *outside]


def outside_scope(declared: DesiredEntity, cluster: ClusterSpec) -> Finding:
    """An entity that is declared outside the scope of its cluster."""
    message = compose(
        "{entity} is outside the scope of {cluster}, so it could never be written",
        entity=declared.entity,
        cluster=f"cluster {display_name(cluster.name)}" if cluster.name else "the cluster",
    )
    related = [Related(span=cluster.span, message="the cluster whose scope it is")] if cluster.span else []
    return finding("outside-scope", message, declared.source, related=related, entity=declared.entity)


def _has_plugin(cluster: ClusterSpec) -> bool:
    return cluster.brokers.callback is not None and cluster.brokers.callback.name == GROUP_CALLBACK


def _declare_totals(_: ClusterManifests, entities: Entities) -> list[Finding]:
    """Beside each value in proportion to leaders the total that the plugin divides, and for which topics."""
    for declared in list(entities.values()):
        for key, quota in declared.units.items():
            if isinstance(quota.unit, Proportional):
                for total in _totals(declared, key, quota, quota.unit):
                    known = entities.get(total.entity, total)
                    entities[total.entity] = replace(known, quotas={**known.quotas, **total.quotas})
    return []


def group_notes(entities: Entities) -> Iterator[Message]:
    """Yield a note about the groups of a cluster: the plugin shares their limits, or members get parts and cannot borrow."""
    divided: dict[str, int] = {}
    shared = []
    for entity, declared in entities.items():
        if is_reserved(entity):
            rule = stored_rule(entity)
            shared += [rule.group] if isinstance(rule, GroupLimit) else []
        for quota in declared.quotas.values():
            if isinstance(quota.unit, GroupPart) and quota.unit.members is not None:
                divided[quota.unit.group] = quota.unit.members
    for group, members in sorted(divided.items()):
        yield compose(
            "Group {group} is divided: each of {members} has an equal part, and none can borrow what another leaves. "
            "Brokers with the plugin of groups share one limit.",
            group=shown_part(group),
            members=count_of(members, "member"),
        )
    if shared:
        yield compose(
            "The members of {groups} share one limit on each broker. Only brokers with {plugin} enforce it.",
            groups=f"group {display_name(shared[0])}" if len(shared) == 1 else f"{len(shared)} groups",
            plugin=flag_part(GROUP_CALLBACK),
        )


GROUPS: Final = Stage(
    applies=lambda manifests, _: any(document.groups for document in manifests.documents), run=_declare, notes=group_notes
)
PLUGIN_TOTALS: Final = Stage(
    applies=lambda manifests, entities: any(d.units for d in entities.values()) and _has_plugin(manifests.cluster),
    run=_declare_totals,
)
