"""What mutations of topics cost, from the lines that show how many partitions the topics had."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconciler.traffic.sources.log_evidence import (
    CREATED,
    DELETED,
    EXTENDED,
    SEEN,
    TOPIC_EVENTS,
    TopicEvent,
    count_partitions,
    topics_text,
)


@given(
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.booleans()), max_size=30),
    with_ids=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_what_a_cluster_did_is_found_whatever_is_logged_when(
    steps: list[tuple[str, int, bool]], seed: int, *, with_ids: bool
) -> None:
    """Each topic is created, extended some times, and deleted; a broker and the controller log it, and answers show it."""
    chance, ids, alive = random.Random(seed), itertools.count(), dict[str, tuple[str | None, int]]()
    shown_rows: list[tuple[int, str]] = []
    expected: dict[tuple[int, str], int] = {}
    for number, (name, more, ends) in enumerate(steps):
        before = alive.get(name)
        if before is None:
            alive[name] = (f"id-{next(ids)}" if with_ids else None, more)
            event, cost = TopicEvent(CREATED, name, *alive[name]), None
        elif ends:
            event, cost = TopicEvent(DELETED, name, before[0]), before[1]
            del alive[name]
        else:
            alive[name] = (before[0], before[1] + more)
            event, cost = TopicEvent(EXTENDED, name, None, before[1] + more), more
        for at in (number * 10, number * 10 + 1):
            shown_rows.append((at, topics_text([event])))
            if cost is not None:
                expected[shown_rows[-1]] = cost
        seen = [TopicEvent(SEEN, topic, *known) for topic, known in alive.items() if chance.random() < 0.5]
        if seen:
            shown_rows.append((number * 10 + chance.randint(2, 9), topics_text(seen)))
    chance.shuffle(shown_rows)
    shown = pa.Table.from_pylist(
        [dict(zip(TOPIC_EVENTS.schema.names, row, strict=True)) for row in shown_rows], TOPIC_EVENTS.schema
    )
    assert count_partitions(shown) == expected
