"""Drift in the form of findings, for the formats that know nothing else: one warning for every entity that differs."""

from __future__ import annotations

from typing import Final

from reconciler.model import Drift, DriftClass, EntityDrift, Finding, KeyDrift, Severity, escaped
from reconciler.render.amounts import amount
from reconciler.render.drift_text import class_words, overrides_words

DRIFT_PREFIX: Final = "drift/"
"""What comes before a class of drift where ids of findings and classes meet; ``explain`` knows the class."""


def drift_findings(drift: Drift) -> tuple[Finding, ...]:
    """In the order of the entities, each where its manifest declares it; unmanaged entities are none."""
    return tuple(_finding(one, drift) for one in drift.entities if one.drift.is_difference)


def _finding(one: EntityDrift, drift: Drift) -> Finding:
    keys = "; ".join(_key(key, one.drift) for key in one.keys)
    why = f" ({class_words(one, drift.prune)})" if one.source is None else ""
    place = one.source or next((key.source for key in one.keys if key.source), None)
    return Finding(
        id=f"{DRIFT_PREFIX}{one.drift.value}",
        severity=Severity.WARNING,
        message=f"{one.entity}{why}: {keys}",
        span=place,
        entity=one.entity,
    )


def _key(key: KeyDrift, drift: DriftClass) -> str:
    if drift is DriftClass.ADDED:
        return f"{escaped(key.key)} is {amount(key.key, key.live)} on the cluster{overrides_words(key)}"
    return f"{escaped(key.key)} is {amount(key.key, key.live)} on the cluster, declared {amount(key.key, key.desired)}"
