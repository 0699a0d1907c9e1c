"""Drift, key by key, with a line that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import BaselineOrigin, Drift, DriftClass, EntityDrift, KeyDrift, Prune, display_name, key_part
from reconciler.render.layout import Block, Column, Line, Style, View, heading, line, note_line, table
from reconciler.render.plan_text import cluster_title, read_words, value_sentences
from reconciler.text import amount, rate

_LOOK: Final = {
    DriftClass.UNAPPLIED: (">", Style.CREATE, "merged, and not applied yet"),
    DriftClass.CHANGED: ("~", Style.UPDATE, "changed outside the manifests"),
    DriftClass.MISSING: ("-", Style.DELETE, "removed outside the manifests"),
    DriftClass.DIFFERS: ("~", Style.UPDATE, "not what the manifests declare"),
    DriftClass.ADDED: ("+", Style.UPDATE, "no manifest declares it"),
    DriftClass.UNMANAGED: ("?", Style.FAINT, "no manifest declares it"),
}
_PRUNED: Final = {
    Prune.ALWAYS: ", and the next apply removes it",
    Prune.CONFIRM: ", and the next apply that accepts guard prune removes it",
    Prune.NEVER: "",
}
_KEPT: Final = "no longer declared, and kept because of prune: never. Declare it with quotas: {} to remove it"

_COLUMNS: Final = (
    Column(title="entity", across=True),
    Column(title="key", least=12),
    Column(title="live", least=9),
    Column(title="last applied", least=9),
    Column(title="declared", least=9),
    Column(title="remark", least=12),
)


def drift_view(drift: Drift) -> View:
    """The whole comparison, key by key. Unmanaged entities are counted."""
    origin = f", {read_words(drift.observed)}{_against(drift.baseline)}"
    return View(
        kind="drift",
        cluster=drift.cluster.name,
        title=line(("Drift of ", Style.STRONG), (cluster_title(drift.cluster), Style.STRONG), origin),
        answer=line((drift_sentence(drift), Style.STRONG)),
        blocks=tuple(_blocks(drift)),
    )


def _blocks(drift: Drift) -> Iterator[Block]:
    yield line()
    shown = [entity for entity in drift.entities if entity.drift is not DriftClass.UNMANAGED]
    if shown:
        yield heading("Differences")
        yield table(_COLUMNS, (row for entity_drift in shown for row in _entity(entity_drift, drift)), indent=6)
        yield line()
    if drift.notes or not drift.complete:
        yield heading("Notes")
    yield from map(note_line, drift.notes)
    if not drift.complete:
        yield note_line("only some manifests were read. Only what they declare was compared")


def drift_sentence(drift: Drift) -> str:
    """Counts of entities, or that nothing differs."""
    counts = drift.counts
    rest = f"{counts[DriftClass.IN_SYNC]:,} in sync, {counts[DriftClass.UNMANAGED]:,} unmanaged"
    if not drift.differs:
        return f"No drift: the cluster has what the manifests declare ({rest})."
    added = f"{counts[DriftClass.ADDED]:,} added"
    if drift.baseline is None:
        return f"{_differ(counts[DriftClass.DIFFERS])}, {added}. {rest}."
    named = (DriftClass.UNAPPLIED, DriftClass.CHANGED, DriftClass.MISSING)
    return f"{', '.join(f'{counts[each]:,} {each.value}' for each in named)}, {added}. {rest}."


def class_words(entity_drift: EntityDrift, prune: Prune) -> str:
    """Return why an entity is in its class, in a few words."""
    words = _LOOK[entity_drift.drift][2]
    if entity_drift.drift in (DriftClass.UNAPPLIED, DriftClass.CHANGED) and not entity_drift.declared and prune is Prune.NEVER:
        return _KEPT if entity_drift.drift is DriftClass.UNAPPLIED else f"{words}, {_KEPT}"
    if entity_drift.drift is DriftClass.ADDED and any(key.overrides for key in entity_drift.keys):
        return f"{words}, and it overrides a declared limit"
    return words + _PRUNED[prune] if entity_drift.drift is DriftClass.ADDED else words


def _differ(count: int) -> str:
    return "1 differs" if count == 1 else f"{count:,} differ"


def _against(origin: BaselineOrigin | None) -> str:
    if origin is None:
        return ""
    commit = f" ({origin.commit[:12]})" if origin.commit else ""
    return f", baseline {display_name(origin.name)}{commit}"


def _entity(entity_drift: EntityDrift, drift: Drift) -> Iterator[Line | tuple[Line | str | tuple[str, Style], ...]]:
    sign, style, _ = _LOOK[entity_drift.drift]
    words = (f"  ({entity_drift.drift.value}: {class_words(entity_drift, drift.prune)})", Style.FAINT)
    entity = line((f"  {sign} ", style), (entity_drift.entity, style), words, pages=(entity_drift.entity, words))
    for key in entity_drift.keys:
        yield entity, *_key(key, entity_drift.drift, has_baseline=drift.baseline is not None)
        yield from (line((f"      {words}", Style.FAINT), hang=8) for words in value_sentences(key))


def _key(key: KeyDrift, drift: DriftClass, *, has_baseline: bool) -> tuple[Line | str | tuple[str, Style], ...]:
    name, live = line(key_part(key.key), hang=0), amount(key.key, key.live)
    if drift in (DriftClass.UNMANAGED, DriftClass.ADDED):
        return name, live, "", "", overrides_words(key).removeprefix(", ")
    applied = amount(key.key, key.baseline) if has_baseline else ""
    place = line((str(key.source), Style.FAINT), hang=0, pages=(key.source,)) if key.source else ""
    return name, live, applied, amount(key.key, key.desired), place


def overrides_words(key: KeyDrift) -> str:
    """Return the declared limit that a key overrides, if any: ``, overrides user=alice (1 MiB/s)``."""
    limit = key.overrides
    return f", overrides {limit.entity} ({rate(key.key, limit.value)})" if limit else ""
