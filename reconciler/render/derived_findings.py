"""Guards and drift as findings, for formats that know nothing else, and values for later steps of CI.

Values are lines ``name=value``, for files such as GitLab's dotenv reports. A value is on one line and has no character that a
shell, or a reader of such files, interprets: numbers, ``true`` and ``false``, digests, and ids. Names of clusters and entities
are never here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from reconciler.model import (
    Drift,
    DriftClass,
    EntityDrift,
    Finding,
    GuardResult,
    GuardStatus,
    KeyDrift,
    Plan,
    Severity,
    Span,
    compose,
    escaped,
)
from reconciler.render.drift_text import class_words, overrides_words
from reconciler.text import amount

GUARD_PREFIX: Final = "guard/"
"""What comes before a guard's id where ids of findings and guards meet."""

DRIFT_PREFIX: Final = "drift/"
"""What comes before a class of drift where ids of findings and classes meet; ``explain`` knows the class."""

_PLACE: Final = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]*):(?P<column>[1-9][0-9]*)", re.DOTALL)
_OF_GUARDS: Final = {GuardStatus.NEEDS_ACCEPTANCE: Severity.ERROR, GuardStatus.ACCEPTED: Severity.INFO}


def plan_outputs(plan: Plan) -> str:
    """The digest, counts of entities, ``applyable``, ``complete``, ``errored`` and ``guards`` (ids)."""
    summary = plan.summary
    return _output_lines(
        {
            "digest": plan.digest,
            "changes": summary.changed,
            "create": summary.create,
            "update": summary.update,
            "delete": summary.delete,
            "unmanaged": summary.unmanaged,
            "applyable": plan.applyable,
            "complete": plan.complete,
            "errored": plan.errored,
            "guards": ",".join(guard.id for guard in plan.tripped),
            **_severity_counts(plan.findings),
        }
    )


def findings_outputs(findings: Sequence[Finding]) -> str:
    """The numbers of new findings as outputs of a CI step, ``errors``, ``warnings`` and ``infos``, and of those ``as_before``."""
    return _output_lines(_severity_counts(findings))


def drift_outputs(drift: Drift) -> str:
    """``drifted``, ``complete``, how many entities are in each class, and how many unmanaged ones the scope contains."""
    counts = {each.value.replace("-", "_"): count for each, count in drift.counts.items()}
    in_scope = len(drift.unmanaged_in_scope)
    return _output_lines({"drifted": drift.differs, "complete": drift.complete, **counts, "unmanaged_in_scope": in_scope})


def _severity_counts(findings: Sequence[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings if not finding.as_before)
    return {**{f"{severity.value}s": counts[severity] for severity in Severity}, "as_before": len(findings) - counts.total()}


def _output_lines(values: Mapping[str, object]) -> str:
    return "".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}\n" for name, value in values.items())


def findings_of_guards(plan: Plan) -> tuple[Finding, ...]:
    """An error for every guard that needs acceptance, an info for every accepted one; those that passed are silent."""
    return tuple(
        Finding(
            id=f"{GUARD_PREFIX}{guard.id}",
            severity=_OF_GUARDS[guard.status],
            message=_guard_sentence(guard),
            span=_place_of(guard, plan),
        )
        for guard in plan.guards
        if guard.status in _OF_GUARDS
    )


def _place_of(guard: GuardResult, plan: Plan) -> Span | None:
    """The proposed line that the guard is about, else where its limit is set, unless that is a file of another commit."""
    about = [change for change in plan.changes if change.entity in guard.entities]
    if guard.status is GuardStatus.NEEDS_ACCEPTANCE and not about:
        about = list(plan.changes)
    source = next((key.source for change in about for key in change.keys if key.source is not None), None)
    place = span_of(guard.set_in)
    return source or (None if place is None or ":" in place.file else place)


def span_of(set_in: str) -> Span | None:
    """The place that a text is, as ``file:line:column``."""
    match = _PLACE.fullmatch(set_in)
    return Span(file=match["file"], line=int(match["line"]), column=int(match["column"])) if match else None


def _guard_sentence(guard: GuardResult) -> str:
    """The guard's message, and for one that needs acceptance how to accept it."""
    if guard.status is not GuardStatus.NEEDS_ACCEPTANCE:
        return guard.message
    return compose("{message} {advice}", message=guard.message, advice=guard.advice or f"To accept, pass --accept {guard.id}.")


def findings_of_drift(drift: Drift) -> tuple[Finding, ...]:
    """Return a finding for each difference, at the line of its manifest, in the order of the entities; none of unmanaged ones."""
    return tuple(_drifted(entity, drift) for entity in drift.entities if entity.drift.is_difference)


def _drifted(entity_drift: EntityDrift, drift: Drift) -> Finding:
    keys = "; ".join(_key_words(key, entity_drift.drift) for key in entity_drift.keys)
    why = f" ({class_words(entity_drift, drift.prune)})" if entity_drift.source is None else ""
    return Finding(
        id=f"{DRIFT_PREFIX}{entity_drift.drift.value}",
        severity=Severity.WARNING,
        message=f"{entity_drift.entity}{why}: {keys}",
        span=entity_drift.source or next((key.source for key in entity_drift.keys if key.source), None),
        entity=entity_drift.entity,
    )


def _key_words(key: KeyDrift, drift: DriftClass) -> str:
    is_added = drift is DriftClass.ADDED
    declared = overrides_words(key) if is_added else f", declared {amount(key.key, key.desired)}"
    return f"{escaped(key.key)} is {amount(key.key, key.live)} on the cluster{declared}"
