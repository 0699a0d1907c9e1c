"""Describe: the quotas that a cluster or a snapshot has for the selected entities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from reconciler.errors import BackendError, RequestRefusedError, UnsupportedClusterError
from reconciler.model import (
    NOT_ASKED,
    ClusterSpec,
    CurrentState,
    Entity,
    EntityType,
    MatchKind,
    Message,
    Quotas,
    Selector,
    TypeMatch,
    compose,
    display_name,
    escaped,
    flag_part,
)
from reconciler.ports import EntityFilter, FilteringReader, QuotaReader
from reconciler.resolution import (
    GROUP_CALLBACK,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    GroupLimit,
    GroupMember,
    MemberKind,
    ProportionalTotal,
    answer,
    callback_notes,
    filter_refusal,
    is_exact,
    is_reserved,
    nearest_filter,
    stored_rule,
)
from reconciler.text import amount, count_of, list_some
from reconciler.workflows.connect import with_facts

EVERYTHING: Final = Selector(types=())
"""Selects every entity there is."""

_WHAT_KAFKA_TAKES: Final = (
    "Kafka filters by user, client-id and, from 2.8 on, ip. Each at most once, and an ip not beside another type"
)


def describe_cluster(reader: QuotaReader, query: Selector = EVERYTHING) -> CurrentState:
    """The entities that ``query`` selects, with all their quotas; types and keys that this tool does not know included.

    A broker filters by itself as far as Kafka's match types go (a literal name, the default, any of both); prefixes, globs,
    regular expressions and "named" are then filtered here. Whatever is not a broker is filtered as a broker would do it. Raises
    ``RequestRefusedError`` or ``UnsupportedClusterError`` for a query that is not a filter of Kafka's, other children of
    ``BackendError`` from the reader, and for a snapshot ``FileAccessError`` or ``ManifestError``.
    """
    entity_filter = nearest_filter(query)
    if isinstance(reader, FilteringReader):
        try:
            state = reader.current_matching(entity_filter)
        except (RequestRefusedError, UnsupportedClusterError) as error:
            if not _is_about_the_filter(error, entity_filter):
                raise
            raise _explained(error, query) from error
    else:
        refused = filter_refusal(entity_filter)
        if refused is not None:
            raise _refused_here(*refused, query)
        whole = reader.current_state()
        state = replace(whole, entities=answer(entity_filter, whole.entities))
    state = with_facts(state, reader)
    if is_exact(query):
        return state
    return replace(state, entities={entity: quotas for entity, quotas in state.entities.items() if query.matches(entity)})


def _is_about_the_filter(error: RequestRefusedError | UnsupportedClusterError, entity_filter: EntityFilter) -> bool:
    """Whether it is the filter that the cluster does not take; it may refuse a request, or not know it, for other reasons."""
    if isinstance(error, RequestRefusedError):
        return error.error_code == INVALID_REQUEST
    # Brokers up to 2.7 know no ip.
    types = {component.entity_type for component in entity_filter.components}
    return EntityType.IP.value in types or filter_refusal(entity_filter) is not None


def _explained(error: RequestRefusedError | UnsupportedClusterError, query: Selector) -> BackendError:
    """The same error, with what we know about the filter behind the broker's words."""
    message = f"{error}. The filter was: {query_words(query)}. {_WHAT_KAFKA_TAKES}"
    if isinstance(error, RequestRefusedError):
        return RequestRefusedError(message, error_code=error.error_code)
    return UnsupportedClusterError(message)


def _refused_here(code: int, words: str, query: Selector) -> BackendError:
    message = f"a broker would refuse this filter with error {code}: {escaped(words).rstrip('.')}"
    kind = UnsupportedClusterError(message) if code == UNSUPPORTED_VERSION else RequestRefusedError(message, error_code=code)
    return _explained(kind, query)


def query_words(query: Selector) -> str:
    """A query in words: ``user named, client-id default, strict``."""
    words = [f"{display_name(entity_type)} {_wanted(wanted)}" for entity_type, wanted in query.types]
    return ", ".join((*words, "strict") if query.strict else words) or "everything"


def _wanted(wanted: TypeMatch) -> str:
    if wanted.kind is MatchKind.NAME:
        return display_name(wanted.text)
    return f"{wanted.kind.value} {display_name(wanted.text)}" if wanted.text else wanted.kind.value


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
