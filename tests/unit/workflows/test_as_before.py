"""Which findings are as before: the same rule and facts, as often as before, and not worse."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import Entity, Finding, MessagePart, PartKind, Severity, Span, compose, name_part
from reconciler.workflows import EarlierFindings, facts_of
from reconciler.workflows.as_before import known_findings

ALICE = Entity.of({"user": "alice"})
PLACE = Span(file="a.yaml", line=3, column=5)


def finding(
    rule: str = "byte-rate-small",
    message: str = "",
    severity: Severity = Severity.WARNING,
    entity: Entity | None = ALICE,
    span: Span | None = PLACE,
) -> Finding:
    return Finding(id=rule, severity=severity, message=message, span=span, entity=entity, key="producer_byte_rate")


def rate(value: float, text: str = "1 MiB/s") -> MessagePart:
    return MessagePart(kind=PartKind.AMOUNT, text=text, value=value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (finding(), finding(span=Span(file="b.yaml", line=9, column=1))),
        (finding(), finding(span=None)),
        (finding(message="Too little."), finding(message="This is not enough.")),
        (finding(message=compose("at {place}", place=PLACE)), finding(message="elsewhere")),
        (finding(severity=Severity.INFO), finding(severity=Severity.WARNING)),
    ],
)
def test_places_words_and_severities_are_not_facts(one: Finding, other: Finding) -> None:
    assert facts_of(one) == facts_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (finding("a-rule"), finding("another")),
        (finding(), finding(entity=Entity.of({"user": "bob"}))),
        (finding(message="overrides 3 client-ids"), finding(message="overrides 4 client-ids")),
        (finding(message=compose("{rate}", rate=rate(1048576))), finding(message=compose("{rate}", rate=rate(1048577)))),
        (finding(message=compose("{who}", who=name_part("a"))), finding(message=compose("{who}", who=name_part("b")))),
    ],
)
def test_rules_entities_names_and_numbers_are_facts(one: Finding, other: Finding) -> None:
    assert facts_of(one) != facts_of(other)


def marks(known: list[Finding], now: list[Finding]) -> list[bool]:
    return [each.as_before for each in EarlierFindings(known_findings(known)).mark(now)]


def test_a_worse_severity_is_new_and_a_better_one_is_not() -> None:
    info, warning, error = (finding(severity=severity) for severity in (Severity.INFO, Severity.WARNING, Severity.ERROR))

    assert marks([info], [warning]) == [False]
    assert marks([warning], [info]) == [True]
    assert marks([error], [warning]) == [True]
    assert marks([error], [error]) == [False]
    assert marks([warning, info], [info, warning]) == [True, True]


def test_what_two_sources_have_is_there_once() -> None:
    known = list(known_findings([finding()]))

    assert [each.as_before for each in EarlierFindings(known, known).mark([finding(), finding()])] == [True, False]


SEVERITIES = st.sampled_from(Severity)
FINDINGS = st.lists(st.builds(finding, rule=st.sampled_from(["a", "b"]), severity=SEVERITIES), max_size=12)


@given(FINDINGS, FINDINGS)
def test_no_more_are_as_before_than_there_were_that_are_as_bad(known: list[Finding], now: list[Finding]) -> None:
    marked = EarlierFindings(known_findings(known)).mark(now)

    assert [(each.id, each.severity) for each in marked] == [(each.id, each.severity) for each in now]
    assert not any(each.as_before and each.severity is Severity.ERROR for each in marked)
    for severity in Severity:
        covered = Counter(each.id for each in marked if each.as_before and each.severity.at_least(severity))
        there = Counter(each.id for each in known if each.severity.at_least(severity))
        assert covered <= there
