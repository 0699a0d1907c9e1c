"""The fixture of Kafka's own filter semantics, and random states and queries over few names, so that much matches."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from tests.builders import client, ip, pair, user

FIXTURE: Final = {
    "a": user("a"),
    "default user": user(),
    "c": client("c"),
    "default client": client(),
    "a+c": pair("a", "c"),
    "a+default": pair("a", DEFAULT),
    "default+default": pair(DEFAULT, DEFAULT),
    "x": ip("10.0.0.1"),
    "default ip": ip(),
    'literal "<default>"': user("<default>"),
}
"""The entities of the reference table, by the words it uses for them."""


def query(*, strict: bool = False, **types: str) -> Selector:
    """``query(user="exact a", client_id="any")``."""
    kinds = {"exact": MatchKind.NAME, "default": MatchKind.DEFAULT, "any": MatchKind.ANY, "named": MatchKind.NAMED}
    kinds["prefix"] = MatchKind.PREFIX
    wanted = []
    for entity_type, words in types.items():
        kind, _, text = words.partition(" ")
        wanted.append((entity_type.replace("_", "-"), TypeMatch(kind=kinds[kind], text=text)))
    return Selector(types=tuple(wanted), strict=strict)


EXPECTED: Final[tuple[tuple[Selector, set[str]], ...]] = (
    (query(user="exact a"), {"a", "a+c", "a+default"}),
    (query(user="exact a", strict=True), {"a"}),
    (query(user="default", strict=True), {"default user"}),
    (query(user="any", strict=True), {"a", "default user", 'literal "<default>"'}),
    (query(user="any", client_id="any"), {"a+c", "a+default", "default+default"}),
    (query(ip="any"), {"x", "default ip"}),
    (query(user="exact <default>"), {'literal "<default>"'}),
    (query(user="exact "), set()),
    (query(), set(FIXTURE)),
    (query(strict=True), set()),
    # What Kafka has no match for.
    (query(user="named", strict=True), {"a", 'literal "<default>"'}),
    (query(user="named"), {"a", "a+c", "a+default", 'literal "<default>"'}),
    (query(user="prefix <"), {'literal "<default>"'}),
    (query(ip="named"), {"x"}),
)
"""Queries and what of the fixture they select; the first ones as the real class answered them."""

_NAMES: Final = ("a", "ab", "b", "<default>", "A", " a")
_ADDRESSES: Final = ("10.0.0.1", "10.0.0.2", "::1")


def _named(names: tuple[str, ...]) -> st.SearchStrategy[object]:
    return st.sampled_from((*names, DEFAULT))


ENTITIES: Final = st.one_of(
    st.builds(user, _named(_NAMES)),
    st.builds(client, _named(_NAMES)),
    st.builds(pair, _named(_NAMES), _named(_NAMES)),
    st.builds(ip, _named(_ADDRESSES)),
)


def quotas_for(entity: Entity) -> dict[str, float]:
    """Quotas that throttle nobody, the test's own connection included."""
    if entity.types == ("ip",):
        return {"connection_creation_rate": 1e6}
    return {"request_percentage": 1e9, "consumer_byte_rate": 1e12}


def _wanted(names: tuple[str, ...]) -> st.SearchStrategy[TypeMatch]:
    texts = st.sampled_from((*names, "absent"))
    return st.one_of(
        st.builds(lambda text: TypeMatch(kind=MatchKind.NAME, text=text), texts),
        st.builds(lambda text: TypeMatch(kind=MatchKind.PREFIX, text=text[:1]), texts),
        st.sampled_from([TypeMatch(kind=kind) for kind in (MatchKind.DEFAULT, MatchKind.NAMED, MatchKind.ANY)]),
    )


QUERIES: Final = st.builds(
    lambda types, strict: Selector(types=tuple(types.items()), strict=strict),
    st.one_of(
        st.just({}),
        st.fixed_dictionaries({"user": _wanted(_NAMES)}),
        st.fixed_dictionaries({"client-id": _wanted(_NAMES)}),
        st.fixed_dictionaries({"client-id": _wanted(_NAMES), "user": _wanted(_NAMES)}),
        st.fixed_dictionaries({"ip": _wanted(_ADDRESSES)}),
    ),
    st.booleans(),
)
STATES: Final = st.sets(ENTITIES, max_size=12).map(lambda found: {entity: quotas_for(entity) for entity in found})
SEVERAL_QUERIES: Final = st.lists(QUERIES, min_size=5, max_size=20)
