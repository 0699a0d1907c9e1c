"""Notes on quotas of reserved users: the groups and totals that they stand for, and whether the brokers have the plugin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.model import (
    NOT_ASKED,
    ClusterSpec,
    CurrentState,
    Entity,
    EntityType,
    Message,
    Quotas,
    compose,
    display_name,
    flag_part,
)
from reconciler.ports import QuotaReader
from reconciler.resolution import (
    GROUP_CALLBACK,
    GroupLimit,
    GroupMember,
    MemberKind,
    ProportionalTotal,
    callback_notes,
    is_reserved,
    stored_rule,
)
from reconciler.text import amount, count_of, list_some
from reconciler.workflows.cluster_facts import with_facts

_SHOWN: Final = 5
_WITH_PREFIX: Final = " that begin with "
_PREFIXES: Final = {MemberKind.USER_PREFIX: EntityType.USER, MemberKind.CLIENT_ID_PREFIX: EntityType.CLIENT_ID}


def stored_rule_notes(state: CurrentState, reader: QuotaReader, spec: ClusterSpec) -> Iterator[Message]:
    """A note for each group and total among the entities of a state, and one about the brokers' callback class."""
    state = with_facts(state, reader)
    reserved = {entity: quotas for entity, quotas in state.entities.items() if is_reserved(entity)}
    if reserved:
        yield from _rule_notes(reserved)
    yield from callback_notes(state.cluster)
    if reserved or spec.brokers.callback is not None:
        yield from _plugin_notes(state, spec, reserved=bool(reserved))


def _rule_notes(reserved: Mapping[Entity, Quotas]) -> Iterator[Message]:
    limits: dict[str, Quotas] = {}
    members: dict[str, list[str]] = defaultdict(list)
    totals: list[Message] = []
    ignored: list[Entity] = []
    for entity, quotas in reserved.items():
        match stored_rule(entity):
            case GroupLimit(group=group):
                limits[group] = quotas
            case GroupMember(group=group, kind=kind, name=name):
                members[group].append(_member(kind, name))
            case ProportionalTotal(subject=subject, topic=topic):
                totals.append(_total(subject, topic, quotas))
            case None:
                ignored.append(entity)
    groups = sorted(limits.keys() | members.keys())
    for group in groups[:_SHOWN]:
        yield _group(group, limits.get(group), sorted(members.get(group, ())))
    yield from totals[:_SHOWN]
    if left := len(groups[_SHOWN:]) + len(totals[_SHOWN:]):
        yield compose("{more} of groups and totals are not listed here.", more=count_of(left, "more rule"))
    if ignored:
        yield compose(
            "The plugin of groups ignores {entities}: their names follow none of its rules.",
            entities=list_some([str(entity) for entity in ignored], _SHOWN),
        )


def _group(group: str, quotas: Quotas | None, members: list[str]) -> Message:
    named = list_some(members, _SHOWN)
    if quotas is None:
        return compose(
            "{members} {are} in group {group}, whose limits are not among these entities.",
            members=named,
            are="is" if _is_one(members) else "are",
            group=display_name(group),
        )
    shared = _limits(quotas)
    if not members:
        return compose("Group {group} has {limits} on each broker. No member is here.", group=display_name(group), limits=shared)
    return compose(
        "{members} {share} {limits} on each broker, as group {group}.",
        members=named,
        share="has" if _is_one(members) else "share",
        limits=shared,
        group=display_name(group),
    )


def _limits(quotas: Quotas) -> str:
    return list_some([f"{key} {amount(key, value)}" for key, value in sorted(quotas.items())], _SHOWN)


def _is_one(members: list[str]) -> bool:
    """Whether a single name is the member, and not those with a prefix."""
    return len(members) == 1 and _WITH_PREFIX not in members[0]


def _total(subject: Entity | str, topic: str | None, quotas: Quotas) -> Message:
    return compose(
        "{subject} has {limits} on all brokers together, by the leaders of {topics}.",
        subject=subject if isinstance(subject, Entity) else f"Group {display_name(subject)}",
        limits=_limits(quotas),
        topics="all topics" if topic is None else f"topic {display_name(topic)}",
    )


def _member(kind: MemberKind, name: str) -> str:
    if kind in _PREFIXES:
        return f"{_PREFIXES[kind].value}s{_WITH_PREFIX}{display_name(name)}"
    return str(Entity.of({kind.value: name}))


def _plugin_notes(state: CurrentState, spec: ClusterSpec, *, reserved: bool) -> Iterator[Message]:
    written = spec.brokers.callback.name if spec.brokers.callback is not None else None
    if state.callback_unknown == NOT_ASKED:
        if written == GROUP_CALLBACK:
            yield compose("By the Cluster manifest, the brokers have the plugin of groups.")
        elif reserved:
            yield compose(
                "Snapshots and ZooKeeper do not show whether the brokers have the plugin of groups. Without it these quotas have "
                "no effect."
            )
    elif state.callback_unknown is not None:
        yield compose("The callback class of the brokers could not be read: {error}", error=state.callback_unknown)
    elif state.cluster.quota_callback == GROUP_CALLBACK:
        yield compose("The brokers have the plugin of groups.")
    elif state.cluster.quota_callback is None and (reserved or written == GROUP_CALLBACK):
        yield compose(
            "The brokers do not have the plugin of groups, so quotas of reserved users have no effect. Set {setting} on them.",
            setting=flag_part(f"client.quota.callback.class={GROUP_CALLBACK}"),
        )
