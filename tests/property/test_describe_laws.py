"""Filters as a broker answers them, canonical order, and the text of an entity, over random inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import RequestRefusedError, UnsupportedClusterError
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch, in_canonical_order
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
from reconciler.resolution.broker_rules import answer, filter_refusal, is_exact, nearest_filter
from reconciler.text.quoting import entity_text
from reconciler.workflows.describe import describe_cluster
from tests.builders import current, pair, user
from tests.fakes import FakeCluster
from tests.support import random_filters
from tests.support.hostile_names import NAMES

STATES = random_filters.STATES
ANY_TYPE = st.sampled_from(["user", "client-id", "ip", "client-id-prefix", "odd, type", ""]) | st.text(max_size=5)
ANY_ENTITY = st.dictionaries(ANY_TYPE, NAMES | st.just(DEFAULT), min_size=1, max_size=3).map(Entity.of)


class Snapshot:
    """A reader that cannot filter for itself."""

    def __init__(self, entities):
        self.entities = entities

    def current_state(self):
        return current(self.entities)


@pytest.mark.parametrize(
    ("query", "expected"),
    random_filters.EXPECTED,
    ids=lambda value: str(sorted(value) if isinstance(value, set | frozenset) else value),
)
def test_the_fixture_is_answered_as_kafka_answers_it(query, expected):
    reader = Snapshot({entity: {"request_percentage": 1.0} for entity in random_filters.FIXTURE.values()})

    found = describe_cluster(reader, query).entities

    assert {words for words, entity in random_filters.FIXTURE.items() if entity in found} == expected


@given(state=STATES, query=random_filters.QUERIES)
def test_the_nearest_filter_lets_through_all_that_is_selected_and_nothing_else_where_it_is_exact(state, query):
    through = answer(nearest_filter(query), state)
    selected = {entity: quotas for entity, quotas in state.items() if query.matches(entity)}

    assert selected.items() <= through.items()
    assert describe_cluster(Snapshot(state), query).entities == selected
    if is_exact(query):
        assert through == selected


COMPONENTS = st.builds(
    FilterComponent,
    entity_type=st.sampled_from(["user", "client-id", "ip", "group", ""]),
    kind=st.sampled_from(FilterKind),
    name=st.none() | st.just("a"),
)


@given(components=st.lists(COMPONENTS, max_size=3).map(tuple))
def test_what_a_broker_refuses_is_known(components):
    refused = filter_refusal(EntityFilter(components=components))
    try:
        FakeCluster().describe(EntityFilter(components=components))
        seen = None
    except UnsupportedClusterError:
        seen = 35
    except RequestRefusedError as error:
        seen = error.error_code
    # With several things wrong a broker names any one of them.
    assert (refused is None) == (seen is None)


def test_a_query_that_is_no_filter_is_refused_with_the_words_of_a_broker():
    query = Selector(types=(("group", TypeMatch(kind=MatchKind.NAME, text="g")),))

    with pytest.raises(UnsupportedClusterError) as raised:
        describe_cluster(Snapshot({}), query)

    for words in ("error 35", "Unsupported entity type group"):
        assert words in str(raised.value)


@given(st.sets(ANY_ENTITY, max_size=12) | st.sets(random_filters.ENTITIES, max_size=40))
def test_canonical_order_is_that_of_the_sort_key(entities):
    assert in_canonical_order(entities) == sorted(entities, key=lambda entity: entity.sort_key)


def test_three_things_that_look_alike_are_three_texts():
    assert entity_text(user(DEFAULT)) == "{user=<default>}"
    assert entity_text(user("<default>")) == '{user="<default>"}'
    assert entity_text(pair(DEFAULT, "my-client")) == "{user=<default>, client-id=my-client}"
    assert entity_text(user("CN=a, OU={b}")) == '{user="CN=a, OU={b}"}'
