"""Notes on quotas of reserved users: the groups and totals that they stand for, and whether the brokers have the plugin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from reconciler.errors import BackendError
from reconciler.model import (
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
from reconciler.ports import CallbackInspector, QuotaReader
from reconciler.resolution import (
    GROUP_CALLBACK,
    GroupLimit,
    GroupMember,
    MemberKind,
    ProportionalTotal,
    is_reserved,
    stored_rule,
)
from reconciler.text import amount, count_of, list_some

_SHOWN: Final = 5
_WITH_PREFIX: Final = " that begin with "
_PREFIXES: Final = {MemberKind.USER_PREFIX: EntityType.USER, MemberKind.CLIENT_ID_PREFIX: EntityType.CLIENT_ID}


def stored_rule_notes(state: CurrentState, reader: QuotaReader, spec: ClusterSpec) -> Iterator[Message]:
    """A note for each group and total among the entities of a state, and one about the brokers' callback class.

    A live cluster is asked for that class only where a reserved user or the Cluster manifest makes it matter.
    """
    reserved = {entity: quotas for entity, quotas in state.entities.items() if is_reserved(entity)}
    if not reserved and spec.quota_callback is None:
        return
    yield from _rule_notes(reserved)
    yield from _callback_notes(reader, spec, reserved=bool(reserved))


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


def _callback_notes(reader: QuotaReader, spec: ClusterSpec, *, reserved: bool) -> Iterator[Message]:
    written = spec.quota_callback.name if spec.quota_callback is not None else None
    if not isinstance(reader, CallbackInspector):
        if written == GROUP_CALLBACK:
            yield compose("By the Cluster manifest, the brokers have the plugin of groups.")
        elif reserved:
            yield compose(
                "Snapshots and ZooKeeper do not show whether the brokers have the plugin of groups. Without it these quotas have "
                "no effect."
            )
        return
    try:
        callback = reader.quota_callback()
    except BackendError as error:
        yield compose("The callback class of the brokers could not be read: {error}", error=str(error))
        return
    if callback == GROUP_CALLBACK:
        yield compose("The brokers have the plugin of groups.")
    elif callback is not None:
        yield compose(
            "The brokers find limits with their own class {callback}, so a client may have another limit than these.",
            callback=display_name(callback),
        )
    elif reserved or written == GROUP_CALLBACK:
        yield compose(
            "The brokers do not have the plugin of groups, so quotas of reserved users have no effect. Set {setting} on them.",
            setting=flag_part(f"client.quota.callback.class={GROUP_CALLBACK}"),
        )
