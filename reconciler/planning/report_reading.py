"""The way back from the document of an apply report to the report: every field is checked, and the error says which is wrong.

Fields that this version does not know are passed over, as a later minor version of the format may add some.
"""

from __future__ import annotations

import json
import re
from typing import Final

from reconciler.errors import FileAccessError
from reconciler.formats import FORMAT_VERSION
from reconciler.model import (
    KNOWN_KEYS,
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    KeyChange,
    Reason,
    same_value,
)
from reconciler.planning.digest import digest
from reconciler.planning.place import Place

_MAJOR: Final = FORMAT_VERSION.partition(".")[0]
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def read_report(text: str, *, name: str) -> ApplyReport:
    """An apply report from the text of its document; ``name`` is the file's.

    Raises ``FileAccessError`` for what is not a whole report of this format's major version, and for one whose digest is not
    that of its own changes: what it says was there before may then be anything.
    """
    try:
        report = report_from_json(json.loads(text))
    except (ValueError, RecursionError) as error:
        msg = f"{name} is not a report written by 'apply --report': {error}"
        raise FileAccessError(msg) from error
    actual = digest(report.cluster.id, [outcome.change for outcome in report.outcomes])
    if report.digest != actual:
        msg = f"{name} was changed after it was written: its digest is {report.digest}, but that of its changes is {actual}"
        raise FileAccessError(msg)
    return report


def report_from_json(document: object) -> ApplyReport:
    """The inverse of ``report_to_json``, but for guards and reasons, which it does not have.

    Raises ``ValueError`` that names the field, e.g. ``changes[3].status``.
    """
    root = Place("the document", document)
    version = root["format_version"].text()
    if version.partition(".")[0] != _MAJOR:
        msg = f"it is of format {version}; this version reads format {_MAJOR}"
        raise ValueError(msg)
    if root["digest"].value is None:
        raise ValueError("it is that of a run that ended before anything was written")
    cluster = root["cluster"]
    report = ApplyReport(
        cluster=ClusterIdentity(**{key: cluster[key].optional(Place.text) for key in ("name", "id", "kafka_version")}),
        digest=root["digest"].matching(_DIGEST, "a digest (sha256: and 64 hexadecimal digits)"),
        result=root["result"].one_of(ApplyResult),
        outcomes=tuple(_outcome(place) for place in root["changes"].items()),
        verified=root["verified"].flag(),
        failure_reason=root["failure_reason"].optional(Place.text),
        message=root["message"].optional(Place.text),
        validate_only=root["validate_only"].flag(),
    )
    if len({outcome.change.entity for outcome in report.outcomes}) != len(report.outcomes):
        raise ValueError("changes has an entity twice")
    for status in ChangeStatus:
        place = root["summary"][status.value]
        if place.count(0) != report.count(status):
            raise place.wrong(f"{report.count(status)}, the number of changes with this status")
    return report


def _outcome(place: Place) -> ChangeOutcome:
    keys = place["keys"]
    changes = tuple(_key(keys[key], key) for key in sorted(keys.mapping()))
    if not changes:
        raise keys.wrong("at least one key")
    change = Change(entity=place["entity"].entity(), action=place["action"].one_of(Action), keys=changes)
    code, reached = place["error_code"], place.get("reached")
    if code.value is not None and (not isinstance(code.value, int) or isinstance(code.value, bool)):
        raise code.wrong("a whole number or null")
    return ChangeOutcome(
        change=change,
        status=place["status"].one_of(ChangeStatus),
        error_code=code.value,
        error=place["error"].optional(Place.text),
        reached=_reached(reached, change) if reached else {},
    )


def _key(place: Place, key: str) -> KeyChange:
    if key not in KNOWN_KEYS:
        raise place.wrong("a quota key that this version writes")
    before, after = place["before"].optional(Place.amount), place["after"].optional(Place.amount)
    if same_value(before, after):
        raise place.wrong("two different values in 'before' and 'after'")
    return KeyChange(key=key, before=before, after=after, reason=Reason.VALUE_DIFFERS)


def _reached(place: Place, change: Change) -> dict[str, tuple[float, ...]]:
    known = {key.key for key in change.keys}
    reached = {key: tuple(one.amount() for one in place[key].items()) for key in place.mapping()}
    if not reached.keys() <= known or not all(reached.values()):
        raise place.wrong("values of keys of the same change")
    return reached
