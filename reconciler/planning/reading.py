"""The way back from a plan document to the plan: every field is checked, and the error says which one is wrong and why.

Fields that this version does not know are passed over, as a later minor version of the format may add some.
"""

from __future__ import annotations

import json
import re
from typing import Final

from reconciler.errors import FileAccessError
from reconciler.formats import FORMAT_VERSION
from reconciler.model import (
    Action,
    Change,
    ClusterIdentity,
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
    same_value,
)
from reconciler.planning.digest import digest
from reconciler.planning.effects_document import effects_from_json
from reconciler.planning.place import Place

_MAJOR: Final = FORMAT_VERSION.partition(".")[0]
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


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
    root = Place("the document", document)
    version = root["format_version"].text()
    if version.partition(".")[0] != _MAJOR:
        msg = f"it is of format {version}; this version reads format {_MAJOR}"
        raise ValueError(msg)
    observed, source, cluster, counts = root["observed"], root["source"], root["cluster"], root["summary"]
    plan = Plan(
        cluster=ClusterIdentity(**{key: cluster[key].optional(Place.text) for key in ("name", "id", "kafka_version")}),
        source=ManifestCommit(commit=source["commit"].optional(Place.text), dirty=source["dirty"].optional(Place.flag)),
        observed=Observed(at=observed["at"].moment(), origin=observed["from"].one_of(ObservedFrom)),
        complete=root["complete"].flag(),
        summary=Summary(**{key: counts[key].count(0) for key in ("create", "update", "delete", "unchanged", "unmanaged")}),
        changes=tuple(_change(place) for place in root["changes"].items()),
        guards=tuple(_guard(place) for place in root["guards"].items()),
        digest=root["digest"].matching(_DIGEST, "a digest (sha256: and 64 hexadecimal digits)"),
        notes=tuple(place.text() for place in root["notes"].items()),
        findings=tuple(_finding(place) for place in root["findings"].items()),
        effects=effects_from_json(place) if (place := root.get("effects")) else None,
        unmanaged=tuple(one.entity() for one in place.items()) if (place := root.get("unmanaged")) else None,
    )
    for key, derived in (("applyable", plan.applyable), ("errored", plan.errored)):
        if root[key].flag() is not derived:
            raise root[key].wrong(f"{str(derived).lower()}, as its guards and findings say")
    return plan


def _change(place: Place) -> Change:
    keys = place["keys"]
    changes = tuple(_key(keys[key], key) for key in sorted(keys.mapping()))
    if not changes:
        raise keys.wrong("at least one key")
    note = place.get("note")
    return Change(
        entity=place["entity"].entity(),
        action=place["action"].one_of(Action),
        keys=changes,
        note=note.text() if note else None,
    )


def _key(place: Place, key: str) -> KeyChange:
    before, after = place["before"].optional(Place.amount), place["after"].optional(Place.amount)
    if same_value(before, after):
        raise place.wrong("two different values in 'before' and 'after'")
    source = place["source"].optional(_span)
    return KeyChange(key=key, before=before, after=after, reason=place["reason"].one_of(Reason), source=source)


def _guard(place: Place) -> GuardResult:
    words = {key: place[key].text() for key in ("id", "measured", "limit", "set_in", "message")}
    return GuardResult(status=place["status"].one_of(GuardStatus), **words)


def _finding(place: Place) -> Finding:
    entity, key = place.get("entity"), place.get("key")
    nowhere = all(place[part].value is None for part in ("file", "line", "column"))
    return Finding(
        id=place["id"].text(),
        severity=place["severity"].one_of(Severity),
        message=place["message"].text(),
        span=None if nowhere else _span(place),
        related=tuple(Related(span=_span(one), message=one["message"].text()) for one in place["related"].items()),
        entity=entity.entity() if entity else None,
        key=key.text() if key else None,
    )


def _span(place: Place) -> Span:
    return Span(file=place["file"].text(), line=place["line"].count(1), column=place["column"].count(1))
