"""A plan document is read back whole, and what is wrong with it is said with its place."""

from __future__ import annotations

import copy
import datetime
import json
from typing import Any

import pytest

from reconciler.documents import PLAN, read_plan
from reconciler.errors import FileAccessError
from reconciler.formats import plan_digest
from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import Action, Change, GuardResult, GuardStatus, KeyChange, ManifestCommit, Plan, Reason
from tests.builders import pair, plan, span, user


def a_plan() -> Plan:
    keys = (
        KeyChange(key="consumer_byte_rate", before=None, after=2.5, reason=Reason.NOT_IN_CURRENT, source=span(8)),
        KeyChange(key="producer_byte_rate", before=1.0, after=None, reason=Reason.KEY_NOT_IN_MANIFEST),
    )
    changes = (Change(entity=user(), action=Action.UPDATE, keys=keys, note="why"),)
    return plan(
        *changes,
        source=ManifestCommit(commit="1a2b", dirty=False),
        guards=(
            GuardResult(
                id="prune", status=GuardStatus.NEEDS_ACCEPTANCE, measured="1", limit="0", set_in="a.yaml:1:2", message="because"
            ),
        ),
        notes=("a note",),
        findings=(
            Finding(
                id="user-prefix",
                severity=Severity.WARNING,
                message="words",
                span=span(3),
                related=(Related(span=span(4), message="here"),),
                entity=pair("a", "b"),
                key="producer_byte_rate",
            ),
            Finding(id="no-place", severity=Severity.INFO, message="words"),
        ),
        digest=plan_digest("c1", changes),
    )


def document() -> dict[str, Any]:
    return json.loads(PLAN.text(a_plan()))


def altered(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    found = document()
    place: Any = found
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return found


def test_the_time_is_read_in_any_zone_and_kept_in_utc() -> None:
    read = PLAN.build(altered(("observed", "at"), "2026-01-02T13:00:00+01:00"))
    assert read.observed.at == datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    assert read.observed.at.utcoffset() == datetime.timedelta(0)


def test_fields_of_a_later_minor_version_are_passed_over() -> None:
    later = altered(("format_version",), "1.7")
    later["changes"][0]["mood"] = "calm"
    later["forecast"] = {"anything": 1}
    assert PLAN.build(later) == a_plan()


KEY = ("changes", 0, "keys", "consumer_byte_rate")
WRONG = [
    (("format_version",), "2.0", "of format 2.0, and this version reads format 1"),
    (("format_version",), 1, "format_version must be a string, not 1"),
    (("cluster",), [], "cluster must be an object, not []"),
    (("cluster", "name"), 5, "cluster.name must be a string or null, not 5"),
    (("source", "dirty"), "no", 'source.dirty must be true or false or null, not "no"'),
    (("observed", "at"), "yesterday", 'observed.at must be a time in ISO 8601, not "yesterday"'),
    (("observed", "at"), "2026-01-02T12:00:00", "observed.at must be a time with its offset from UTC"),
    (("observed", "from"), "hearsay", 'observed.from must be one of broker, zookeeper, snapshot, not "hearsay"'),
    (("complete",), None, "complete must be true or false, not null"),
    (("applyable",), True, "applyable must be false by the other fields"),
    (("summary", "create"), -1, "summary.create must be at least 0, not -1"),
    (("changes",), {}, "changes must be a list"),
    (("changes", 0, "entity"), {}, "changes[0].entity must be filled, not {}"),
    (("changes", 0, "keys"), {}, "changes[0].keys must be filled, not {}"),
    (("changes", 0, "note"), None, "changes[0].note must be a string, not null"),
    ((*KEY, "after"), "12", "changes[0].keys.consumer_byte_rate.after must be a number or one of NaN"),
    ((*KEY, "after"), float("inf"), "changes[0].keys.consumer_byte_rate"),
    ((*KEY, "after"), 10**400, "changes[0].keys.consumer_byte_rate.after must be a number in the range of a double"),
    ((*KEY, "after"), None, "changes[0].keys.consumer_byte_rate must be two different values"),
    ((*KEY, "source", "line"), 0, "changes[0].keys.consumer_byte_rate.source.line must be at least 1, not 0"),
    (("findings", 0, "file"), None, "findings[0].file must be a string"),
    (("findings", 0, "related", 0, "line"), None, "findings[0].related[0].line must be a whole number"),
    (("findings", 0, "entity"), None, "findings[0].entity must be an object"),
    (("digest",), "sha256:1", "digest must be a string of the form ^sha256:"),
]


@pytest.mark.parametrize(("path", "value", "words"), WRONG, ids=lambda one: str(one)[:40])
def test_an_error_names_the_field_what_it_must_be_and_what_it_is(path: tuple[str | int, ...], value: object, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are compared below
        PLAN.build(altered(path, value))
    assert words in str(caught.value)


@pytest.mark.parametrize("root", [None, [], "x", 5])
def test_a_document_that_is_no_object_is_refused(root: object) -> None:
    with pytest.raises(ValueError, match="the document must be an object"):
        PLAN.build(root)


def paths(value: object, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every field of a document."""
    if isinstance(value, dict):
        return [path for key, one in value.items() for path in [(*above, key), *paths(one, (*above, key))]]
    if isinstance(value, list):
        return [path for number, one in enumerate(value) for path in paths(one, (*above, number))]
    return []


def may_be_missing(path: tuple[str | int, ...]) -> bool:
    """What is optional; and one of two keys, or of two types of an entity, leaves a plan as good as before."""
    match path:
        case ("changes", 0, "note") | ("findings", 0, "entity" | "key"):
            return True
        case ("changes", 0, "keys", _) | ("findings", 0, "entity", _):
            return True
    return False


@pytest.mark.parametrize("path", paths(document()), ids=str)
def test_no_field_may_be_missing_but_those_that_say_so(path: tuple[str | int, ...]) -> None:
    found = copy.deepcopy(document())
    place: Any = found
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    if may_be_missing(path):
        PLAN.build(found)
    else:
        with pytest.raises(ValueError, match=r"lacks|must be|must not"):
            PLAN.build(found)


@pytest.mark.parametrize("text", ["", "[", "x", "null", "[" * 100_000, '{"format_version": "1.0"}', "1" * 5000])
def test_what_is_no_plan_is_refused_with_the_name_of_the_file(text: str) -> None:
    with pytest.raises(FileAccessError, match=r"^plan\.json is not a plan written by 'plan --format json': "):
        read_plan(text, name="plan.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("digest",), "sha256:" + "0" * 64),
        ((*KEY, "after"), 3),
        (("cluster", "id"), "another"),
        (("changes", 0, "entity"), {"user": "alice"}),
        (("changes",), []),
    ],
)
def test_a_plan_that_was_changed_by_hand_is_refused(path: tuple[str | int, ...], value: object) -> None:
    with pytest.raises(FileAccessError, match=r"plan\.json was changed after it was written: its digest is sha256:"):
        read_plan(json.dumps(altered(path, value)), name="plan.json")
