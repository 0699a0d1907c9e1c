"""What every document keeps to: it reads back as it was written, and hostile text is refused with the field that is wrong."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents import BACKTEST, PLAN, read_plan
from reconciler.documents.kinds import FieldError
from reconciler.errors import FileAccessError
from reconciler.formats import plan_digest
from reconciler.formats.canonical import document_text
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
    assert read_plan(PLAN.text(made), name="plan.json") == made


@pytest.mark.parametrize("name", [LONE, "a" + LONE, "\\ud800", "\x00", "\U0001f4a9"])
def test_a_wrong_field_is_found_beside_any_name(name: str) -> None:
    document = as_read(PLAN.write(of_names(name)))
    document["changes"][0]["entity"][name] = 5
    with pytest.raises(FieldError, match="must be a string or null, not 5"):
        PLAN.build(document)


def test_names_that_differ_only_in_how_surrogates_are_spelled_are_both_checked() -> None:
    document = as_read(PLAN.write(of_names("x")))
    document["changes"][0]["entity"] = {LONE: 5, "\\ud800": "fine"}
    with pytest.raises(FieldError, match="must be a string or null, not 5"):
        PLAN.build(document)


@pytest.mark.parametrize("depth", [300, 900])
def test_unknown_fields_that_are_nested_deep_are_passed_over(depth: int) -> None:
    text = PLAN.text(of_names("x"))
    text = text.replace("{", '{"later": ' + "[" * depth + "]" * depth + ",", 1)
    assert read_plan(text, name="plan.json") == of_names("x")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_json_does_not_have_are_refused(constant: str) -> None:
    text = PLAN.text(of_names("x")).replace('"after": 1', f'"after": {constant}')
    with pytest.raises(FileAccessError, match=r"is not JSON|must be a number"):
        read_plan(text, name="plan.json")


def test_a_backtest_reads_back() -> None:
    finding = Finding(id="some-rule", severity=Severity.WARNING, message="words", entity=Entity.of({"user": "a"}))
    report = dataclasses.replace(full(), findings=(finding,))
    assert BACKTEST.build(as_read(BACKTEST.write(report))) == report


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("verdicts", 0, "members", 0, "share"), "much", "verdicts[0].members[0].share must be a number or one of NaN"),
        (("provenance", "coverage", 0, "from"), "2026-13-01T00:00:00.000Z", "provenance.coverage[0].from must be a time in ISO"),
        (("verdicts", 1, "first"), "2026-02-31T00:00:00.000Z", "verdicts[1].first must be a time in ISO 8601"),
        (("verdicts", 0, "peak"), None, "verdicts[0].peak must be a number or one of NaN"),
        (("verdicts", 0, "bucket"), {"user": 7}, "verdicts[0].bucket.user must be a string, not 7"),
    ],
)
def test_an_error_of_a_backtest_begins_with_the_path_of_its_field(
    path: tuple[str | int, ...], value: object, problem: str
) -> None:
    document = as_read(BACKTEST.write(full()))
    field: Any = document
    for part in path[:-1]:
        field = field[part]
    field[path[-1]] = value
    with pytest.raises(FieldError) as caught:
        BACKTEST.build(document)
    assert str(caught.value).startswith(problem)


def test_a_path_escapes_the_names_of_strangers() -> None:
    document = as_read(PLAN.write(of_names("x")))
    document["changes"][0]["entity"] = {"a\nb": 5}
    with pytest.raises(FieldError, match="must be a string or null, not 5") as caught:
        PLAN.build(document)
    assert "\n" not in str(caught.value)
