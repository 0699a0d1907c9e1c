"""Drift: live against declared quotas, and against the baseline, which distinguishes merged changes from manual ones.

Nothing here can write: all that it is given of a cluster is a reader.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.logs import log_event
from reconciler.model import Baseline, CurrentState, Drift, ManifestCommit, Selector, any_matches
from reconciler.planning import (
    compare,
    forgotten_entities,
    forgotten_note,
    possible_overrides,
    unalterable_entities,
    unalterable_notes,
)
from reconciler.ports import QuotaReader
from reconciler.resolution import callback_notes
from reconciler.workflows.baselines import GivenBaseline
from reconciler.workflows.intent import Intent
from reconciler.workflows.owners import unread_owners
from reconciler.workflows.units import divide_totals, read_for

_log: Final = logging.getLogger(__name__)
_MOST_NAMED: Final = 5
_NO_BASELINE: Final = (
    "no baseline was given, so unapplied changes look the same as changes by hand. Entities that left the manifests look the "
    "same as entities that were never in them. Pass --baseline REF or FILE"
)


def find_drift(
    intent: Intent, reader: QuotaReader, given: GivenBaseline | None = None, *, ignore: Sequence[Selector] = ()
) -> Drift:
    """Read the cluster and compare; entities that ``ignore`` selects are counted, and shown nowhere else.

    Raises ``WrongClusterError`` when another cluster answers, ``BackendError`` when none does, and ``BaselineError`` for the
    baseline of another one.
    """
    return drift_from(intent, read_for(intent, reader), given, ignore=ignore, source=intent.source())


def drift_from(
    intent: Intent,
    current: CurrentState,
    given: GivenBaseline | None = None,
    *,
    ignore: Sequence[Selector] = (),
    source: ManifestCommit,
) -> Drift:
    """The drift between two states, without reading anything. Raises ``BaselineError`` for the baseline of another cluster."""
    if intent.desired.with_units:
        intent = divide_totals(intent, current)
    baseline = given.of(intent.spec.name, current) if given is not None else None
    spec = intent.spec
    declared_then = baseline.entities if baseline else None
    compared = compare(
        intent.desired,
        current.entities,
        declared_then,
        scope=spec.scope,
        prune=spec.prune,
        unmanaged_then=baseline.unmanaged if baseline else None,
    )
    shown = tuple(entity for entity in compared.entities if not any_matches(ignore, entity.entity))
    ignored = [entity for entity in compared.entities if any_matches(ignore, entity.entity)]
    quiet = possible_overrides(compared.overrides, baseline.unmanaged if baseline else None)
    drift = Drift(
        cluster=current.cluster.named(spec.name),
        source=source,
        observed=current.observed,
        complete=intent.desired.complete,
        prune=spec.prune,
        baseline=baseline.origin if baseline else None,
        entities=shown,
        counts={
            each: count - sum(1 for entity_drift in ignored if entity_drift.drift is each)
            for each, count in compared.counts.items()
        },
        ignored=len(ignored),
        notes=(*current.notes, *intent.notes, *((quiet,) if quiet is not None else ()), *_notes(intent, current, baseline)),
        findings=(*intent.findings, *intent.owner_errors),
    )
    counts = {each.value: count for each, count in drift.counts.items()}
    log_event(_log, "drift found", level=logging.INFO, cluster=spec.name, ignored=drift.ignored, **counts)
    return drift


def _notes(intent: Intent, current: CurrentState, baseline: Baseline | None) -> Iterator[str]:
    yield from callback_notes(current.cluster)
    yield from (node.message for node in current.unreadable)
    yield from unalterable_notes(unalterable_entities(intent.desired, current.entities, intent.spec.scope))
    yield from unread_owners(intent.scope.errors)
    if baseline is None:
        yield _NO_BASELINE
        return
    gone = forgotten_entities(baseline.entities, intent.desired, current, intent.spec.scope)
    if gone:
        yield forgotten_note(gone, baseline.origin.name)
