"""The way back from a plan document to the plan: every field is checked, and the error says which one is wrong and why.

Fields that this version does not know are passed over, as a later minor version of the format may add some.
"""

from __future__ import annotations

import datetime
import enum
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from reconciler.errors import FileAccessError
from reconciler.formats.canonical import FORMAT_VERSION, entity_from_json
from reconciler.model.change import Action, Change, KeyChange, Reason
from reconciler.model.entity import Entity, escaped
from reconciler.model.finding import Finding, Related, Severity
from reconciler.model.plan import GuardResult, GuardStatus, Plan, Source, Summary
from reconciler.model.source import Span
from reconciler.model.state import ClusterIdentity, Observed, ObservedFrom, same_value
from reconciler.planning.digest import digest

_MAJOR: Final = FORMAT_VERSION.partition(".")[0]
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN: Final = 60

T = TypeVar("T")
E = TypeVar("E", bound=enum.StrEnum)


def read_plan(text: str, *, name: str) -> Plan:
    """A plan from the text of its document; ``name`` is the file's.

    Raises ``FileAccessError`` for what is not a whole plan of this format's major version, and for one whose digest is not that
    of its own changes: whatever is shown of it would not be what the digest stands for.
    """
    try:
        plan = plan_from_json(json.loads(text))
    except (ValueError, RecursionError) as error:
        msg = f"{name} is not a plan written by 'plan --format json': {error}"
        raise FileAccessError(msg) from error
    actual = digest(plan.cluster.id, plan.changes)
    if plan.digest != actual:
        msg = f"{name} was changed after it was written: its digest is {plan.digest}, but that of its changes is {actual}"
        raise FileAccessError(msg)
    return plan


def plan_from_json(document: object) -> Plan:
    """The inverse of ``plan_to_json``. Raises ``ValueError`` that names the field, e.g. ``changes[3].entity``."""
    root = _Place("the document", document)
    version = root["format_version"].text()
    if version.partition(".")[0] != _MAJOR:
        msg = f"it is of format {version}; this version reads format {_MAJOR}"
        raise ValueError(msg)
    observed, source, cluster, counts = root["observed"], root["source"], root["cluster"], root["summary"]
    plan = Plan(
        cluster=ClusterIdentity(**{key: cluster[key].optional(_Place.text) for key in ("name", "id", "kafka_version")}),
        source=Source(commit=source["commit"].optional(_Place.text), dirty=source["dirty"].optional(_Place.flag)),
        observed=Observed(at=observed["at"].moment(), origin=observed["from"].one_of(ObservedFrom)),
        complete=root["complete"].flag(),
        summary=Summary(**{key: counts[key].count(0) for key in ("create", "update", "delete", "unchanged", "unmanaged")}),
        changes=tuple(_change(place) for place in root["changes"].items()),
        guards=tuple(_guard(place) for place in root["guards"].items()),
        digest=root["digest"].matching(_DIGEST, "a digest (sha256: and 64 hexadecimal digits)"),
        notes=tuple(place.text() for place in root["notes"].items()),
        findings=tuple(_finding(place) for place in root["findings"].items()),
    )
    for key, derived in (("applyable", plan.applyable), ("errored", plan.errored)):
        if root[key].flag() is not derived:
            raise root[key].wrong(f"{str(derived).lower()}, as its guards and findings say")
    return plan


def _change(place: _Place) -> Change:
    keys = place["keys"]
    changes = tuple(_key(keys[key], key) for key in sorted(keys.mapping()))
    if not changes:
        raise keys.wrong("at least one key")
    note = place.get("note")
    return Change(
        entity=_entity(place["entity"]),
        action=place["action"].one_of(Action),
        keys=changes,
        note=note.text() if note else None,
    )


def _key(place: _Place, key: str) -> KeyChange:
    before, after = place["before"].optional(_Place.amount), place["after"].optional(_Place.amount)
    if same_value(before, after):
        raise place.wrong("two different values in 'before' and 'after'")
    source = place["source"].optional(_span)
    return KeyChange(key=key, before=before, after=after, reason=place["reason"].one_of(Reason), source=source)


def _entity(place: _Place) -> Entity:
    try:
        return entity_from_json(place.mapping())
    except ValueError as error:
        raise place.wrong(f"an entity ({error})") from error


def _guard(place: _Place) -> GuardResult:
    words = {key: place[key].text() for key in ("id", "measured", "limit", "set_in", "message")}
    return GuardResult(status=place["status"].one_of(GuardStatus), **words)


def _finding(place: _Place) -> Finding:
    entity, key = place.get("entity"), place.get("key")
    nowhere = all(place[part].value is None for part in ("file", "line", "column"))
    return Finding(
        id=place["id"].text(),
        severity=place["severity"].one_of(Severity),
        message=place["message"].text(),
        span=None if nowhere else _span(place),
        related=tuple(Related(span=_span(one), message=one["message"].text()) for one in place["related"].items()),
        entity=_entity(entity) if entity else None,
        key=key.text() if key else None,
    )


def _span(place: _Place) -> Span:
    return Span(file=place["file"].text(), line=place["line"].count(1), column=place["column"].count(1))


class _Place:
    """A value of the document together with the way to it, so that an error can say where it is."""

    def __init__(self, path: str, value: object) -> None:
        self.path = path
        self.value = value

    def wrong(self, wanted: str) -> ValueError:
        """The error: where, what is wanted, and what is there."""
        there = escaped(json.dumps(self.value))
        shown = there if len(there) <= _SHOWN else f"{there[:_SHOWN]}..."
        return ValueError(f"{self.path} must be {wanted}, not {shown}")

    def mapping(self) -> Mapping[str, object]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def __getitem__(self, key: str) -> _Place:
        found = self.get(key)
        if found is None:
            msg = f"{self.path} lacks {key!r}"
            raise ValueError(msg)
        return found

    def get(self, key: str) -> _Place | None:
        content = self.mapping()
        path = escaped(key) if self.path == "the document" else f"{self.path}.{escaped(key)}"
        return _Place(path, content[key]) if key in content else None

    def items(self) -> Iterator[_Place]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return (_Place(f"{self.path}[{number}]", one) for number, one in enumerate(self.value))

    def optional(self, read: Callable[[_Place], T]) -> T | None:
        return None if self.value is None else read(self)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def matching(self, pattern: re.Pattern[str], wanted: str) -> str:
        if not pattern.fullmatch(self.text()):
            raise self.wrong(wanted)
        return self.text()

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def count(self, least: int) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < least:
            raise self.wrong(f"a whole number from {least} on")
        return self.value

    def one_of(self, choices: type[E]) -> E:
        try:
            return choices(self.text())
        except ValueError as error:
            raise self.wrong(f"one of {', '.join(choices)}") from error

    def amount(self) -> float:
        if isinstance(self.value, str) and self.value in _NOT_FINITE:
            return _NOT_FINITE[self.value]
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number, null, or one of the strings NaN, Infinity and -Infinity")
        try:
            number = float(self.value)
        except OverflowError as error:
            raise self.wrong("a number that a double can hold") from error
        if not math.isfinite(number):
            raise self.wrong("a number that a double can hold")
        return number

    def moment(self) -> datetime.datetime:
        try:
            at = datetime.datetime.fromisoformat(self.text())
        except ValueError as error:
            raise self.wrong("a time in ISO 8601") from error
        if at.tzinfo is None:
            raise self.wrong("a time with its offset from UTC")
        return at.astimezone(datetime.UTC)
