"""Describe: the quotas that a cluster or a snapshot has for the selected entities."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reconciler.errors import BackendError, RequestRefusedError, UnsupportedClusterError
from reconciler.model import CurrentState, EntityType, MatchKind, Selector, TypeMatch, display_name, escaped
from reconciler.ports import EntityFilter, FilteringReader, QuotaReader
from reconciler.resolution import INVALID_REQUEST, UNSUPPORTED_VERSION, answer, filter_refusal, is_exact, nearest_filter
from reconciler.workflows.cluster_facts import with_facts

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
