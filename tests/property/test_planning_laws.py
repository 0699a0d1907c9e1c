"""Laws of planning over random states: applying a plan yields the desired state, and nothing else ever moves."""

from __future__ import annotations

import hashlib
import random
from fnmatch import fnmatchcase

from deepdiff import DeepDiff
from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.formats import Json, canonical_bytes, plan_digest
from reconciler.model.cluster import Prune, Scope
from reconciler.model.entity import DEFAULT, Entity, EntityName, MatchKind, Selector, TypeMatch
from reconciler.model.plan import Action, Change, KeyChange, Reason
from reconciler.model.quota import KNOWN_KEYS, legal_keys
from reconciler.model.state import DesiredState
from reconciler.planning import quotas_after
from reconciler.planning.diff import difference, sort_for_writing
from reconciler.text import number_text
from tests.builders import current, declared, desired

NAMES = st.one_of(st.just(DEFAULT), st.sampled_from(["a", "b", "<default>", "x y", "é"]))
SHAPES = st.one_of(
    st.fixed_dictionaries({"user": NAMES}),
    st.fixed_dictionaries({"client-id": NAMES}),
    st.fixed_dictionaries({"user": NAMES, "client-id": NAMES}),
    st.fixed_dictionaries({"ip": st.one_of(st.just(DEFAULT), st.sampled_from(["10.0.0.1", "10.0.0.2"]))}),
)
ENTITIES = SHAPES.map(Entity.of)
FOREIGN = st.just(Entity.of({"client-id-prefix": "app-"}))


def quotas_of(entity: Entity) -> st.SearchStrategy[dict[str, float]]:
    keys = [key.value for key in legal_keys(entity.types)]
    return st.dictionaries(st.sampled_from(keys), st.sampled_from([1.0, 2.0, 1024.0]), min_size=1)


@st.composite
def states(draw: st.DrawFn, *, with_foreign: bool = False) -> dict[Entity, dict[str, float]]:
    entities = draw(st.lists(st.one_of(ENTITIES, FOREIGN) if with_foreign else ENTITIES, unique=True, max_size=12))
    state = {entity: draw(quotas_of(entity)) for entity in entities}
    if with_foreign and state and draw(st.booleans()):
        next(iter(state.values()))["key_of_the_future"] = 7.0
    return state


def wanted(state: dict[Entity, dict[str, float]]) -> DesiredState:
    return desired(*(declared(entity, **quotas) for entity, quotas in state.items()))


def applied(live: dict[Entity, dict[str, float]], changes: tuple[Change, ...]) -> dict[Entity, dict[str, float]]:
    result = {entity: dict(quotas) for entity, quotas in live.items()}
    for change in changes:
        quotas = result.setdefault(change.entity, {})
        for key in change.keys:
            if key.after is None:
                quotas.pop(key.key)
            else:
                quotas[key.key] = key.after
        if not quotas:
            del result[change.entity]
    return result


def planned(
    want: dict[Entity, dict[str, float]],
    live: dict[Entity, dict[str, float]],
    scope: Scope | None = None,
    prune: Prune = Prune.ALWAYS,
) -> tuple[Change, ...]:
    found = difference(wanted(want), current(live), scope=scope or Scope(), prune=prune)
    return sort_for_writing(found.changes, live)


def known(state: dict[Entity, dict[str, float]]) -> dict[Entity, dict[str, float]]:
    trimmed = {e: {k: v for k, v in q.items() if k in KNOWN_KEYS} for e, q in state.items() if e.is_known}
    return {e: q for e, q in trimmed.items() if q}


@given(states(), states(with_foreign=True))
def test_applying_the_plan_leaves_exactly_the_desired_state_and_all_that_is_foreign(
    want: dict[Entity, dict[str, float]], live: dict[Entity, dict[str, float]]
) -> None:
    after = applied(live, planned(want, live))
    assert quotas_after(live, planned(want, live)) == after
    assert known(after) == want
    foreign = {(e, k): v for e, q in live.items() for k, v in q.items() if not e.is_known or k not in KNOWN_KEYS}
    assert {(e, k): v for e, q in after.items() for k, v in q.items() if not e.is_known or k not in KNOWN_KEYS} == foreign


@given(states(), states(with_foreign=True))
def test_a_second_plan_is_empty(want: dict[Entity, dict[str, float]], live: dict[Entity, dict[str, float]]) -> None:
    assert planned(want, applied(live, planned(want, live))) == ()


TEXTS = {
    MatchKind.NAME: ["a", "<default>", "x y", "10.0.0.1"],
    MatchKind.PREFIX: ["", "a", "<", "10."],
    MatchKind.GLOB: ["*", "?", "<*>", "10.0.0.?"],
}
MATCHES = st.sampled_from(list(MatchKind)).flatmap(
    lambda kind: st.sampled_from(TEXTS.get(kind, [""])).map(lambda text: TypeMatch(kind=kind, text=text))
)
SELECTORS = st.builds(
    Selector,
    types=st.dictionaries(st.sampled_from(["user", "client-id", "ip"]), MATCHES, min_size=1).map(lambda d: tuple(d.items())),
    strict=st.booleans(),
)
SCOPES = st.builds(Scope, include=st.lists(SELECTORS, max_size=3).map(tuple), exclude=st.lists(SELECTORS, max_size=3).map(tuple))


def owned(scope: Scope, entity: Entity) -> bool:
    """The words of the manual, read once more: no selector, fnmatch or engine of ours is asked."""

    def means(match: TypeMatch, name: EntityName | None) -> bool:
        if name is None:
            return False
        if name is DEFAULT:
            return match.kind in (MatchKind.DEFAULT, MatchKind.ANY)
        return {
            MatchKind.NAME: lambda: name == match.text,
            MatchKind.DEFAULT: lambda: False,
            MatchKind.NAMED: lambda: True,
            MatchKind.ANY: lambda: True,
            MatchKind.PREFIX: lambda: name[: len(match.text)] == match.text,
            MatchKind.GLOB: lambda: fnmatchcase(name, match.text),
        }[match.kind]()

    def chosen(selectors: tuple[Selector, ...]) -> bool:
        return any(
            all(means(match, entity.name(of)) for of, match in one.types)
            and (not one.strict or set(entity.types) == {of for of, _ in one.types})
            for one in selectors
        )

    return (
        set(entity.types) <= {"user", "client-id", "ip"}
        and (not scope.include or chosen(scope.include))
        and not chosen(scope.exclude)
    )


@given(states(), states(with_foreign=True), SCOPES, st.sampled_from(list(Prune)))
def test_outside_the_scope_nothing_is_ever_planned(
    want: dict[Entity, dict[str, float]], live: dict[Entity, dict[str, float]], scope: Scope, prune: Prune
) -> None:
    changes = planned(want, live, scope, prune)
    assert [change.entity for change in changes if not owned(scope, change.entity)] == []
    after = applied(live, changes)
    assert {e: q for e, q in after.items() if not owned(scope, e)} == {e: q for e, q in live.items() if not owned(scope, e)}


@given(states(), states(with_foreign=True), SCOPES)
def test_inside_the_scope_pruning_leaves_exactly_what_is_declared(
    want: dict[Entity, dict[str, float]], live: dict[Entity, dict[str, float]], scope: Scope
) -> None:
    after = applied(live, planned(want, live, scope))
    assert {e: q for e, q in known(after).items() if owned(scope, e)} == {e: q for e, q in want.items() if owned(scope, e)}


@given(states(), states(), st.randoms(use_true_random=False))
def test_the_plan_and_its_digest_do_not_depend_on_the_order_of_the_input(
    want: dict[Entity, dict[str, float]], live: dict[Entity, dict[str, float]], shuffle: random.Random
) -> None:
    items = list(want.items())
    shuffle.shuffle(items)
    first, second = planned(want, live), planned(dict(items), dict(reversed(live.items())))
    assert [c.alteration() for c in first] == [c.alteration() for c in second]
    assert plan_digest("c1", first) == plan_digest("c1", second)


def essence(changes: tuple[Change, ...]) -> set[object]:
    return {(c.entity, k.key, k.before, k.after) for c in changes for k in c.keys}


@given(want=states(), other=st.none() | states(), live=states(), elsewhere=st.none() | states())
def test_digests_are_equal_exactly_when_the_changes_are(
    want: dict[Entity, dict[str, float]],
    other: dict[Entity, dict[str, float]] | None,
    live: dict[Entity, dict[str, float]],
    elsewhere: dict[Entity, dict[str, float]] | None,
) -> None:
    first, second = planned(want, live), planned(want if other is None else other, live if elsewhere is None else elsewhere)
    assert (plan_digest("c1", first) == plan_digest("c1", second)) == (essence(first) == essence(second))
    assert plan_digest("c1", first) != plan_digest("c2", first)


@given(st.lists(st.text(), unique=True, max_size=4), st.none() | st.text(), st.floats(min_value=0) | st.none())
def test_a_digest_is_that_of_the_canonical_json_of_the_changes(
    names: list[str], cluster_id: str | None, before: float | None
) -> None:
    entities = [Entity.of({"user": name, "client-id": DEFAULT}) for name in names]
    keys = (KeyChange(key="request_percentage", before=before, after=12.5, reason=Reason.VALUE_DIFFERS),)
    changes = [Change(entity=entity, action=Action.UPDATE, keys=keys) for entity in entities]
    value = None if before is None else number_text(before)
    rows: list[Json] = [[{"user": name, "client-id": None}, "request_percentage", value, "12.5"] for name in sorted(names)]

    expected = canonical_bytes({"changes": rows, "cluster": cluster_id, "format": "1"})

    assert plan_digest(cluster_id, changes) == "sha256:" + hashlib.sha256(expected).hexdigest()


@given(states(), states(), st.data())
def test_a_digest_changes_with_the_live_value_that_a_change_replaces(
    want: dict[Entity, dict[str, float]], live: dict[Entity, dict[str, float]], data: st.DataObject
) -> None:
    first = planned(want, live)
    replaced = [(change.entity, key) for change in first for key in change.keys if key.before is not None]
    assume(replaced)
    entity, key = data.draw(st.sampled_from(replaced))
    value = data.draw(st.sampled_from([3.0, 4.0, 2048.0]))
    second = planned(want, {**live, entity: {**live[entity], key.key: value}})
    assert essence(first) ^ essence(second) == {(entity, key.key, key.before, key.after), (entity, key.key, value, key.after)}
    assert plan_digest("c1", first) != plan_digest("c1", second)


@given(states(), states())
def test_deepdiff_sees_a_difference_exactly_where_the_plan_has_a_change(
    want: dict[Entity, dict[str, float]], live: dict[Entity, dict[str, float]]
) -> None:
    seen = DeepDiff(
        {str(e): q for e, q in live.items()}, {str(e): q for e, q in want.items()}, view="tree", threshold_to_diff_deeper=0
    )
    roots = {item.path(output_format="list")[0] for group in seen.values() for item in group}
    assert roots == {str(change.entity) for change in planned(want, live)}
