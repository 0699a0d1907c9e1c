"""A state at a moment is that of manifests in which expired values are replaced by what follows, and others by themselves."""

from __future__ import annotations

import datetime
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifest.desired import desired_state
from reconciler.manifest.documents import ClientQuotasDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import ClusterSpec
from reconciler.model.state import DesiredState

DAYS = tuple(datetime.date(2026, 12, day) for day in range(1, 6))
NUMBERS = st.integers(1, 1000)
PLAIN = st.one_of(NUMBERS, NUMBERS.map(lambda number: {"clusterTotal": number}))
EXPIRING = st.fixed_dictionaries({"value": PLAIN, "until": st.sampled_from(DAYS).map(str)}, optional={"then": PLAIN})
VALUES = st.one_of(PLAIN, EXPIRING)
KEYS = ("producer_byte_rate", "consumer_byte_rate")
LAYER = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=2)
OVERRIDE = st.dictionaries(st.sampled_from(KEYS), st.one_of(VALUES, st.none()), max_size=2)
ENTRIES = st.lists(st.tuples(LAYER, st.one_of(st.none(), OVERRIDE)), min_size=1, max_size=4)
MOMENTS = st.datetimes(datetime.datetime(2026, 11, 30), datetime.datetime(2026, 12, 6), timezones=st.just(datetime.UTC))


def replaced(layer: dict[str, Any], at: datetime.datetime) -> dict[str, Any]:
    """The layer as an author would write it at that moment."""
    values = {}
    for key, value in layer.items():
        if not isinstance(value, dict) or "until" not in value:
            values[key] = value
        elif at < datetime.datetime.fromisoformat(f"{value['until']}T00:00:00+00:00"):
            values[key] = value["value"]
        elif "then" in value:
            values[key] = value["then"]
    return values


def state(entries: list[tuple[dict[str, Any], dict[str, Any] | None]], at: datetime.datetime | None) -> DesiredState:
    rows = [
        {"match": {"user": f"u{n}"}, "quotas": layer}
        | ({} if override is None else {"overrides": [{"clusters": ["prod"], "quotas": override}]})
        for n, (layer, override) in enumerate(entries)
    ]
    text = f"apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec: {json.dumps({'quotas': rows})}\n"
    documents = [each for each in read_documents(text.encode(), "all.yaml").documents if isinstance(each, ClientQuotasDocument)]
    result = desired_state(documents, ClusterSpec(name="prod"), at=at)
    assert result.findings == ()
    return result.state


@given(entries=ENTRIES, at=MOMENTS)
def test_a_state_is_that_of_manifests_with_the_values_of_the_moment(
    entries: list[tuple[dict[str, Any], dict[str, Any] | None]], at: datetime.datetime
) -> None:
    written = [(replaced(layer, at), None if override is None else replaced(override, at)) for layer, override in entries]

    assert state(entries, at).values() == state(written, None).values()


@given(entries=ENTRIES, at=MOMENTS)
def test_nothing_changes_before_the_next_expiry(
    entries: list[tuple[dict[str, Any], dict[str, Any] | None]], at: datetime.datetime
) -> None:
    now = state(entries, at)
    following = now.next_expiry()
    until = DAYS[-1] if following is None else following
    last = datetime.datetime(until.year, until.month, until.day, tzinfo=datetime.UTC) - datetime.timedelta(seconds=1)
    if following is None:
        last += datetime.timedelta(days=400)

    assert state(entries, max(at, last)).values() == now.values()
    if following is not None:
        assert following > at
