"""Plans of every shape, and one in which a stranger chose every word that a stranger can choose."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import example
from hypothesis import strategies as st

from reconciler.model import (
    DEFAULT,
    Action,
    Change,
    ClusterIdentity,
    Entity,
    Finding,
    GuardResult,
    GuardStatus,
    KeyChange,
    ManifestCommit,
    Observed,
    ObservedFrom,
    Plan,
    Reason,
    Related,
    Severity,
    Span,
    Summary,
)
from tests.builders import plan, span, user
from tests.support.hostile_names import HOSTILE, NAMES

VALUES = st.one_of(st.floats(min_value=1e-3, max_value=1e18), st.sampled_from([0.0, float("inf"), 20971520.0, 2.0**63]))
SPANS = st.builds(Span, file=NAMES.filter(bool), line=st.integers(1, 10**6), column=st.integers(1, 500))
ENTITIES = st.dictionaries(
    st.sampled_from(["user", "client-id", "ip", "client-id-prefix"]), st.one_of(st.just(DEFAULT), NAMES), min_size=1
).map(Entity.of)


@st.composite
def key_changes(draw: st.DrawFn, key: str) -> KeyChange:
    before, after = draw(st.tuples(st.none() | VALUES, st.none() | VALUES).filter(lambda pair: pair[0] != pair[1]))
    reason = draw(st.sampled_from(list(Reason)))
    return KeyChange(key=key, before=before, after=after, reason=reason, source=draw(st.none() | SPANS))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    names = draw(
        st.lists(st.sampled_from(["producer_byte_rate", "request_percentage", "key|of`<the> @future"]), min_size=1, unique=True)
    )
    return Change(
        entity=draw(ENTITIES),
        action=draw(st.sampled_from(list(Action))),
        keys=tuple(draw(key_changes(name)) for name in sorted(names)),
        note=draw(st.none() | NAMES),
    )


IDS = st.sampled_from(["user-prefix", "default-entity", "too-many-removals"])
GUARDS = st.builds(
    GuardResult, id=IDS, status=st.sampled_from(list(GuardStatus)), measured=NAMES, limit=NAMES, set_in=NAMES, message=NAMES
)
FINDINGS = st.builds(
    Finding,
    id=IDS,
    severity=st.sampled_from(list(Severity)),
    message=NAMES,
    span=st.none() | SPANS,
    related=st.lists(st.builds(Related, span=SPANS, message=NAMES), max_size=2).map(tuple),
    entity=st.none() | ENTITIES,
    key=st.none() | NAMES,
)
TIMES = st.datetimes(
    min_value=datetime.datetime(2020, 1, 1), max_value=datetime.datetime(2040, 1, 1), timezones=st.just(datetime.UTC)
)
PLANS = st.builds(
    Plan,
    cluster=st.builds(ClusterIdentity, name=st.none() | NAMES, id=st.none() | NAMES, kafka_version=st.none() | NAMES),
    source=st.builds(ManifestCommit, commit=st.none() | NAMES, dirty=st.none() | st.booleans()),
    observed=st.builds(Observed, at=TIMES, origin=st.sampled_from(list(ObservedFrom))),
    complete=st.booleans(),
    summary=st.builds(Summary, **dict.fromkeys(("create", "update", "delete", "unchanged", "unmanaged"), st.integers(0, 10**6))),
    changes=st.lists(changes(), max_size=4).map(tuple),
    guards=st.lists(GUARDS, max_size=3).map(tuple),
    digest=st.just("sha256:" + "0123456789abcdef" * 4),
    notes=st.lists(NAMES, max_size=3).map(tuple),
    findings=st.lists(FINDINGS, max_size=3).map(tuple),
)


def everything_called(name: str) -> Plan:
    """A plan in which a stranger chose every word that a stranger can choose."""
    place = span(3, name or "a", 5)
    key = KeyChange(key="producer_byte_rate", before=1.0, after=2.0, reason=Reason.VALUE_DIFFERS, source=place)
    gone = KeyChange(key="producer_byte_rate", before=1.0, after=None, reason=Reason.ENTITY_NOT_IN_MANIFEST)
    message = f"it changes {user(name)}, {name}"
    return plan(
        Change(entity=user(name), action=Action.UPDATE, keys=(key,), note=name),
        Change(entity=user(name), action=Action.DELETE, keys=(gone,)),
        cluster=ClusterIdentity(name=name, id=name, kafka_version=name),
        guards=tuple(
            GuardResult(id="prune", status=status, measured=name, limit=name, set_in=name, message=message)
            for status in GuardStatus
        ),
        notes=(name,),
        findings=(
            Finding(
                id="user-prefix",
                severity=Severity.WARNING,
                message=message,
                span=place,
                related=(Related(span=place, message=name),),
                entity=user(name),
            ),
        ),
        source=ManifestCommit(commit=name, dirty=True),
    )


def all_hostile(test: Any) -> Any:
    """Every listed name is tried each time, beside the random ones."""
    for name in HOSTILE:
        test = example(name)(test)
    return test
