"""Describe: the quotas that a cluster or a snapshot has for the selected entities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reconciler.errors import BackendError, RequestRefusedError, UnsupportedClusterError
from reconciler.model import NOT_ASKED, ClusterSpec, CurrentState, EntityType, Message, Selector, compose, escaped, flag_part
from reconciler.ports import EntityFilter, FilteringReader, QuotaReader
from reconciler.resolution import (
    GROUP_CALLBACK,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    answer,
    callback_notes,
    filter_refusal,
    is_exact,
    is_reserved,
    nearest_filter,
)
from reconciler.text import count_of
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
            raise _explained(error) from error
    else:
        refused = filter_refusal(entity_filter)
        if refused is not None:
            raise _refused_here(*refused)
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


def _explained(error: RequestRefusedError | UnsupportedClusterError) -> BackendError:
    """The same error, with what we know about the filter behind the broker's words."""
    message = f"{error}. {_WHAT_KAFKA_TAKES}"
    if isinstance(error, RequestRefusedError):
        return RequestRefusedError(message, error_code=error.error_code)
    return UnsupportedClusterError(message)


def _refused_here(code: int, words: str) -> BackendError:
    message = f"a broker would refuse this filter with error {code}: {escaped(words).rstrip('.')}"
    kind = UnsupportedClusterError(message) if code == UNSUPPORTED_VERSION else RequestRefusedError(message, error_code=code)
    return _explained(kind)


def stored_rule_notes(state: CurrentState, reader: QuotaReader, spec: ClusterSpec) -> Iterator[Message]:
    """Notes on groups and totals among the entities of a state, and on the brokers' callback class."""
    state = with_facts(state, reader)
    reserved = [entity for entity in state.entities if is_reserved(entity)]
    if reserved:
        yield compose(
            "{entities} for groups and totals of the plugin of groups. {resolve} shows the limits of their members.",
            entities=count_of(len(reserved), "of these entities stands", "of these entities stand"),
            resolve=flag_part("kafka-quotas resolve"),
        )
    yield from callback_notes(state.cluster)
    if reserved or spec.brokers.callback is not None:
        yield from _plugin_notes(state, spec, reserved=bool(reserved))


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
