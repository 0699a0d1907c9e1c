"""Describe: the quotas that a cluster or a snapshot has for the selected entities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reconciler.errors import RequestRefusedError, UnsupportedClusterError
from reconciler.model import ClusterSpec, CurrentState, Message, Selector, compose, escaped, flag_part
from reconciler.ports import FilteringReader, QuotaReader
from reconciler.resolution import (
    GROUP_CALLBACK,
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


def describe_cluster(reader: QuotaReader, query: Selector = EVERYTHING) -> CurrentState:
    """The entities that ``query`` selects, with all their quotas; types and keys that this tool does not know included.

    A broker filters by itself as far as Kafka's match types go (a literal name, the default, any of both); prefixes, globs,
    regular expressions and "named" are then filtered here. Whatever is not a broker is filtered as a broker would do it. Raises
    ``RequestRefusedError`` or ``UnsupportedClusterError`` for a query that is not a filter of Kafka's, other children of
    ``BackendError`` from the reader, and for a snapshot ``FileAccessError`` or ``ManifestError``.
    """
    entity_filter = nearest_filter(query)
    if isinstance(reader, FilteringReader):
        state = reader.current_matching(entity_filter)
    else:
        refused = filter_refusal(entity_filter)
        if refused is not None:
            code, words = refused
            message = f"a broker would refuse this filter with error {code}: {escaped(words)}"
            unsupported = code == UNSUPPORTED_VERSION
            raise UnsupportedClusterError(message) if unsupported else RequestRefusedError(message, error_code=code)
        whole = reader.current_state()
        state = replace(whole, entities=answer(entity_filter, whole.entities))
    state = with_facts(state, reader)
    if is_exact(query):
        return state
    return replace(state, entities={entity: quotas for entity, quotas in state.entities.items() if query.matches(entity)})


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
    written = spec.brokers.callback is not None and spec.brokers.callback.name == GROUP_CALLBACK
    if (reserved or written) and state.callback_unknown is None and state.cluster.quota_callback is None:
        yield compose(
            "The brokers do not have the plugin of groups, so quotas of reserved users have no effect. Set {setting} on them.",
            setting=flag_part(f"client.quota.callback.class={GROUP_CALLBACK}"),
        )
    elif reserved and state.callback_unknown is not None and not written:
        yield compose("Nothing shows whether the brokers have the plugin of groups. Without it these quotas have no effect.")
