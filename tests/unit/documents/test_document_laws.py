"""What every document keeps to: it reads back as it was written, and hostile text is refused with the field that is wrong."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents.backtest import backtest_from_json, backtest_to_json
from reconciler.documents.plan import plan_digest, plan_from_json, plan_to_json, read_plan
from reconciler.documents.reading import FieldError
from reconciler.errors import FileAccessError
from reconciler.formats.canonical import document_text
from reconciler.formats.document_check import document_problem
from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Severity
from reconciler.model.plan import Action, Change, KeyChange, Plan, Reason
from tests.builders import plan, span, user
from tests.unit.render.test_backtest_renderings import full

LONE = "\ud800"


def of_names(*names: str) -> Plan:
    keys = (KeyChange(key="producer_byte_rate", before=None, after=1.0, reason=Reason.NOT_IN_CURRENT, source=span(8)),)
    changes = tuple(Change(entity=user(name), action=Action.CREATE, keys=keys) for name in names)
    made = plan(*changes)
    return dataclasses.replace(made, digest=plan_digest(made.cluster.id, changes))


def as_read(document: Any) -> Any:
    return json.loads(document_text(document))


@given(st.lists(st.text(st.characters(), max_size=6), unique=True, max_size=4))
def test_plans_with_any_names_read_back(names: list[str]) -> None:
    made = of_names(*names)
    assert read_plan(document_text(plan_to_json(made)), name="plan.json") == made


@pytest.mark.parametrize("name", [LONE, "a" + LONE, "\\ud800", "\x00", "\U0001f4a9"])
def test_a_wrong_field_is_found_beside_any_name(name: str) -> None:
    document = as_read(plan_to_json(of_names(name)))
    document["changes"][0]["entity"][name] = 5
    with pytest.raises(FieldError, match="must be a string or null, not 5"):
        plan_from_json(document)


def test_names_that_differ_only_in_how_surrogates_are_spelled_are_both_checked() -> None:
    document = as_read(plan_to_json(of_names("x")))
    document["changes"][0]["entity"] = {LONE: 5, "\\ud800": "fine"}
    with pytest.raises(FieldError, match="must be a string or null, not 5"):
        plan_from_json(document)


@pytest.mark.parametrize("depth", [300, 900])
def test_unknown_fields_that_are_nested_deep_are_passed_over(depth: int) -> None:
    text = document_text(plan_to_json(of_names("x")))
    text = text.replace("{", '{"later": ' + "[" * depth + "]" * depth + ",", 1)
    assert read_plan(text, name="plan.json") == of_names("x")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_json_does_not_have_are_refused(constant: str) -> None:
    text = document_text(plan_to_json(of_names("x"))).replace('"after": 1', f'"after": {constant}')
    with pytest.raises(FileAccessError, match=r"is not JSON|must be a number"):
        read_plan(text, name="plan.json")


def test_a_backtest_reads_back_but_for_the_places_of_its_rules() -> None:
    finding = Finding(id="some-rule", severity=Severity.WARNING, message="words", entity=Entity.of({"user": "a"}))
    report = dataclasses.replace(full(), findings=(finding,))
    rules = tuple(dataclasses.replace(rule, span=None) for rule in report.rules)
    assert backtest_from_json(as_read(backtest_to_json(report))) == dataclasses.replace(report, rules=rules)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("verdicts", 0, "members", 0, "share"), "much", "verdicts[0].members[0].share must be a number, not "),
        (("provenance", "span", "from"), "2026-13-01T00:00:00.000Z", "provenance.span.from must be a time in ISO 8601"),
        (("verdicts", 1, "first"), "2026-02-31T00:00:00.000Z", "verdicts[1].first must be a time in ISO 8601"),
        (("capacity", 0, "limits_after"), None, "capacity[0].limits_after must be a number, not null"),
        (("verdicts", 0, "bucket"), {"user": 7}, "verdicts[0].bucket.user must be a string, not 7"),
    ],
)
def test_an_error_of_a_backtest_begins_with_the_path_of_its_field(
    path: tuple[str | int, ...], value: object, problem: str
) -> None:
    document = as_read(backtest_to_json(full()))
    field: Any = document
    for part in path[:-1]:
        field = field[part]
    field[path[-1]] = value
    with pytest.raises(FieldError) as caught:
        backtest_from_json(document)
    assert str(caught.value).startswith(problem)


def test_a_path_escapes_the_names_of_strangers() -> None:
    problem = document_problem(as_read(plan_to_json(of_names("x"))) | {"changes": [{"entity": {"a\nb": 5}}]}, "plan")
    assert problem is not None
    assert "\n" not in problem
