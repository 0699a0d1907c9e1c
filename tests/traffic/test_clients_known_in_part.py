"""Where the history does not name who sent something, nothing is said that the name could change, and everything else is."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import BucketVerdict, Verdict
from reconciler.model.entity import DEFAULT, Entity
from reconciler.resolution.resolver import Resolver
from reconciler.traffic.judging.grouping import Series, group_series
from reconciler.traffic.judging.judged_quotas import unused_quotas
from reconciler.traffic.kinds import Kind
from tests.support.local_traffic import open_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRODUCE = "producer_byte_rate"
ALICE, ALICE_APP = Entity.of({"user": "alice"}), Entity.of({"user": "alice", "client-id": "app"})
ANYONE, CLIENTS = Entity.of({"user": DEFAULT}), Entity.of({"client-id": DEFAULT})

SHAPES = [
    Entity.of({t: n for t, n in (("user", u), ("client-id", c)) if n is not None})
    for u in (None, DEFAULT, "a")
    for c in (None, DEFAULT, "x")
    if (u, c) != (None, None)
]


def series(*clients: tuple[str | None, str | None]) -> list[Series]:
    return [
        Series(broker=1, kind=Kind.PRODUCE, user=u, client_id=c, requests=10, amount=1000, key=number)
        for number, (u, c) in enumerate(clients)
    ]


def tables(quotas: dict[Entity, dict[str, float]]) -> dict[str, Resolver]:
    return {PRODUCE: Resolver(quotas, PRODUCE)}


def test_an_unknown_client_id_is_of_no_weight_where_only_users_have_quotas() -> None:
    found = group_series(series(("alice", "app"), ("alice", None)), None, tables({ALICE: {PRODUCE: 5.0}}))
    assert [(t.members, t.undecided, t.may_have) for t in found.targets] == [((0, 1), False, 0)]


def test_an_unknown_client_id_may_be_of_the_pair_or_of_the_user() -> None:
    quotas = {ALICE: {PRODUCE: 5.0}, ALICE_APP: {PRODUCE: 9.0}}
    known = series(("alice", "app"), ("alice", "other"), ("bob", "app"), ("alice", None))
    found = group_series(known, None, tables(quotas))
    assert [(t.bucket.user, t.bucket.client_id, t.undecided, t.may_have) for t in found.targets] == [
        ("", "app", False, 1), ("alice", "", False, 1), ("alice", "app", False, 1), ("alice", "", True, 0),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, "", "x", "y"])), min_size=1, max_size=8, unique=True
    ),
    st.dictionaries(st.sampled_from(SHAPES), st.integers(1, 9).map(float), max_size=4),
)
def test_a_bucket_may_have_whoever_is_of_it_under_some_name(
    clients: list[tuple[str | None, str | None]], quotas: dict[Entity, float]
) -> None:
    resolver = Resolver({entity: {PRODUCE: value} for entity, value in quotas.items()}, PRODUCE)
    known = series(*clients)
    found = group_series(known, None, {PRODUCE: resolver})
    assert sorted(member for target in found.targets for member in target.members) == list(range(len(known)))
    undecided = [known[t.members[0]] for t in found.targets if t.undecided]
    for target in found.targets:
        if target.undecided or target.after.value is None:
            continue
        possible = sum(
            any(
                resolver.resolve(user, client).bucket == target.bucket
                for user in (["a", "b", "c"] if one.user is None else [one.user])
                for client in (["", "x", "y", "z"] if one.client_id is None else [one.client_id])
            )
            for one in undecided
        )
        assert target.may_have >= possible


def test_an_unknown_user_is_of_no_weight_where_only_client_ids_have_quotas() -> None:
    found = group_series(series(("alice", "app"), (None, "app")), None, tables({CLIENTS: {PRODUCE: 5.0}}))
    assert [t.members for t in found.targets] == [(0, 1)]
    split = group_series(series(("alice", "app"), (None, "app")), None, tables({CLIENTS: {PRODUCE: 5.0}, ANYONE: {PRODUCE: 6.0}}))
    assert [t.undecided for t in split.targets] == [False, True]


def test_a_change_is_of_an_undecided_client_when_it_is_about_a_quota_that_may_be_theirs() -> None:
    before = {ALICE: {PRODUCE: 5.0}, ALICE_APP: {PRODUCE: 9.0}, Entity.of({"user": "bob"}): {PRODUCE: 1.0}}
    others = {**before, Entity.of({"user": "bob"}): {PRODUCE: 2.0}}
    theirs = {**before, ALICE_APP: {PRODUCE: 8.0}}
    reconsidered = [
        group_series(series(("alice", None)), tables(before), tables(after)).targets[0].reconsidered for after in (others, theirs)
    ]
    assert reconsidered == [False, True]


def test_a_quota_that_an_unnamed_client_may_use_is_not_called_unused() -> None:
    quotas = {ALICE: {PRODUCE: 5.0}, ALICE_APP: {PRODUCE: 9.0}, Entity.of({"user": "bob"}): {PRODUCE: 1.0}}
    alice, limits = series(("alice", None)), tables(quotas)
    unused = unused_quotas(alice, group_series(alice, limits, limits), limits, (), quotas)
    assert [u.entity for u in unused] == [Entity.of({"user": "bob"})]


@pytest.mark.spark
@pytest.mark.parametrize("form", ["requests", "seconds", "cells"])
def test_verdicts_on_traffic_without_all_client_ids(spark: SparkSession, form: str, tmp_path: Path) -> None:
    from reconciler.features.compacting.segments import Compaction, SourceFile
    from reconciler.traffic import Backtest, BacktestRequest, find_traffic
    from reconciler.traffic.seconds.folder import SegmentFolder
    from reconciler.traffic.sources.normal_form import COLUMNS

    start = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    clients = (("alice", None, 10), ("alice", "app", 1000), ("alice", "big", 10**6), ("carol", None, 10**6))
    rows = [
        (start + datetime.timedelta(seconds=second), 0, 1, user, client, "produce", amount, "event")
        for second in range(30)
        for user, client, amount in clients
    ]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in COLUMNS[:8]))
    recorded = tmp_path / "recorded"
    frame.coalesce(1).write.parquet(str(recorded))
    if form == "cells":
        (file,) = recorded.glob("*.parquet")
        files = {file: SourceFile(path=file, id="one", size=1)}
        Compaction(files=files, folder=SegmentFolder(tmp_path / "cells")).of_normal_form(spark)
        recorded = tmp_path / "cells"
    quotas = {
        ALICE_APP: {PRODUCE: 10**6.0},
        Entity.of({"user": "alice", "client-id": "big"}): {PRODUCE: 1000.0},
        Entity.of({"user": "carol"}): {PRODUCE: 10**5.0},
    }
    traffic = open_here(find_traffic([str(recorded)]))
    exact = form == "requests"
    report = Backtest(traffic, BacktestRequest(current=None, proposed=quotas, declared=quotas, exact=exact)).report()
    found_of = {(v.name.user, v.name.client_id, v.undecided): v for v in report.verdicts}

    def told(user: str, client: str, *, undecided: bool = False) -> BucketVerdict:
        return found_of[user, client, undecided]

    assert told("carol", "").verdict is Verdict.THROTTLED
    assert told("carol", "").recorded.members[0].client_id is None
    assert told("alice", "", undecided=True).verdict is Verdict.INCONCLUSIVE
    assert told("alice", "", undecided=True).limits.after is None
    # Clear by what is known of it, and what is not known may change that.
    assert told("alice", "app").verdict is Verdict.INCONCLUSIVE
    assert "a client that" in (told("alice", "app").reason or "")
    # Far over: from seconds, more traffic cannot make it less.
    assert told("alice", "big").verdict is (Verdict.INCONCLUSIVE if exact else Verdict.THROTTLED)
