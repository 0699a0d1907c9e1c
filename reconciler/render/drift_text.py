"""Drift for a terminal, key by key with a line that counts, and as Markdown for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model import BaselineOrigin, Drift, DriftClass, EntityDrift, KeyDrift, Prune, display_name
from reconciler.render.layout import Block, Column, Line, Style, labelled, line, message_segments, table
from reconciler.render.markdown_text import code, in_cell, list_section, prose, rows_that_fit, size
from reconciler.render.plan_text import cluster_title
from reconciler.render.value_sentences import drift_sentences
from reconciler.text import amount, rate

_LOOK: Final = {
    DriftClass.UNAPPLIED: (">", Style.CREATE, "merged, and not applied yet"),
    DriftClass.CHANGED: ("~", Style.UPDATE, "changed behind the manifests' back"),
    DriftClass.MISSING: ("-", Style.DELETE, "removed behind the manifests' back"),
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
_ORIGIN: Final = {"broker": "its brokers", "zookeeper": "ZooKeeper", "snapshot": "a snapshot"}

_COLUMNS: Final = (
    Column(title="key", least=12),
    Column(title="live", least=9),
    Column(title="last applied", least=9),
    Column(title="declared", least=9),
    Column(title="remark", least=12),
)

_UNMANAGED_ROWS: Final = 10
"""How many unmanaged entities of the scope are listed unless the user asks for all."""
_DRIFT_HEAD: Final = (
    "| Class | Entity | Key | Live | Last applied | Declared | Source |",
    "| --- | --- | --- | ---: | ---: | ---: | --- |",
)
_DRIFT_SENTENCES: Final = 400


def drift_lines(drift: Drift, *, show_unmanaged: bool = False) -> tuple[Block, ...]:
    """The whole comparison, readable from top to bottom.

    Unmanaged entities are counted; the first of those in the scope are listed, and all when asked for.
    """
    return tuple(_lines(drift, show_unmanaged=show_unmanaged))


def _lines(drift: Drift, *, show_unmanaged: bool) -> Iterator[Block]:
    read = drift.observed
    yield line(
        ("Drift of ", Style.STRONG),
        (cluster_title(drift.cluster), Style.STRONG),
        f", read from {_ORIGIN[read.origin.value]} at {read.at:%Y-%m-%d %H:%M:%S} UTC{_against(drift.baseline)}",
    )
    yield line()
    shown = [entity for entity in drift.entities if show_unmanaged or entity.drift is not DriftClass.UNMANAGED]
    if shown:
        yield table(_COLUMNS, (row for entity_drift in shown for row in _entity(entity_drift, drift)), indent=6)
        yield line()
    if not show_unmanaged:
        yield from _unmanaged(drift)
    for note in drift.notes:
        yield labelled("Note: ", Style.FAINT, *message_segments(note))
    if not drift.complete:
        yield labelled("Note: ", Style.FAINT, "only some manifests were read. Only what they declare was compared")
    yield line((drift_sentence(drift), Style.STRONG))


def drift_sentence(drift: Drift) -> str:
    """Counts of entities, or that nothing differs."""
    counts = drift.counts
    rest = f"{counts[DriftClass.IN_SYNC]:,} in sync, {counts[DriftClass.UNMANAGED]:,} unmanaged"
    if drift.ignored:
        rest += f", {drift.ignored:,} ignored"
    if not drift.differs:
        return f"No drift: the cluster has what the manifests declare ({rest})."
    added = f"{counts[DriftClass.ADDED]:,} added"
    if drift.baseline is None:
        return f"{_differ(counts[DriftClass.DIFFERS])}, {added}. {rest}."
    named = (DriftClass.UNAPPLIED, DriftClass.CHANGED, DriftClass.MISSING)
    return f"{', '.join(f'{counts[each]:,} {each.value}' for each in named)}, {added}. {rest}."


def class_words(entity_drift: EntityDrift, prune: Prune) -> str:
    """Why an entity is in its class, in a few words."""
    words = _LOOK[entity_drift.drift][2]
    if entity_drift.drift in (DriftClass.UNAPPLIED, DriftClass.CHANGED) and not entity_drift.declared and prune is Prune.NEVER:
        return _KEPT if entity_drift.drift is DriftClass.UNAPPLIED else f"{words}, {_KEPT}"
    if entity_drift.drift is DriftClass.ADDED and any(key.overrides for key in entity_drift.keys):
        return f"{words}, and it overrides a declared limit"
    return words + _PRUNED[prune] if entity_drift.drift is DriftClass.ADDED else words


def _unmanaged(drift: Drift) -> Iterator[Line]:
    """The first unmanaged entities that the scope contains, in one line each, without their values."""
    unmanaged = drift.unmanaged_in_scope
    if not unmanaged:
        return
    yield line("Not declared, and in the scope:")
    for entity_drift in unmanaged[:_UNMANAGED_ROWS]:
        yield line((f"  ? {entity_drift.entity}", Style.FAINT))
    if len(unmanaged) > _UNMANAGED_ROWS:
        yield line((f"  and {len(unmanaged) - _UNMANAGED_ROWS:,} more. --show-unmanaged lists all", Style.FAINT))
    yield line()


def _differ(count: int) -> str:
    return "1 differs" if count == 1 else f"{count:,} differ"


def _against(origin: BaselineOrigin | None) -> str:
    if origin is None:
        return ""
    commit = f" ({origin.commit[:12]})" if origin.commit else ""
    return f", baseline {display_name(origin.name)}{commit}"


def _entity(entity_drift: EntityDrift, drift: Drift) -> Iterator[Line | tuple[str | tuple[str, Style], ...]]:
    sign, style, _ = _LOOK[entity_drift.drift]
    yield line(
        (f"  {sign} {entity_drift.entity}", style),
        (f"  ({entity_drift.drift.value}: {class_words(entity_drift, drift.prune)})", Style.FAINT),
    )
    for key in entity_drift.keys:
        yield _key(key, entity_drift.drift, has_baseline=drift.baseline is not None)
        yield from (line((f"      {words}", Style.FAINT), hang=8) for words in drift_sentences(key))


def _key(key: KeyDrift, drift: DriftClass, *, has_baseline: bool) -> tuple[str | tuple[str, Style], ...]:
    live = amount(key.key, key.live)
    if drift in (DriftClass.UNMANAGED, DriftClass.ADDED):
        return key.key, live, "", "", overrides_words(key).removeprefix(", ")
    applied = amount(key.key, key.baseline) if has_baseline else ""
    return key.key, live, applied, amount(key.key, key.desired), (str(key.source) if key.source else "", Style.FAINT)


def overrides_words(key: KeyDrift) -> str:
    """Which declared limit a key overrides, if it does: ``, overrides user=alice (1 MiB/s)``."""
    limit = key.overrides
    return f", overrides {limit.entity} ({rate(key.key, limit.value)})" if limit else ""


def drift_markdown(drift: Drift, *, budget: int) -> str:
    """The differences in at most ``budget`` bytes; rows that have no room are counted."""
    name = f": {code(display_name(drift.cluster.name))}" if drift.cluster.name else ""
    head = (f"### Kafka quotas, drift{name}", "", f"**{drift_sentence(drift)}**", "")
    notes = list_section("Notes", (f"- {prose(note)}" for note in drift.notes), total=len(drift.notes), room=budget // 10)
    undeclared = [f"- {code(str(entity_drift.entity))}" for entity_drift in drift.unmanaged_in_scope[:_UNMANAGED_ROWS]]
    if (more := len(drift.unmanaged_in_scope) - len(undeclared)) > 0:
        undeclared.append(f"- and {more:,} more. `kafka-quotas drift --show-unmanaged` lists all")
    unmanaged = list_section("Not declared, and in the scope", undeclared, total=len(undeclared), room=budget // 10)
    differing = [(entity, key) for entity in drift.entities if entity.drift.is_difference for key in entity.keys]
    room = budget - size(head) - size(notes.lines) - size(unmanaged.lines) - size(_DRIFT_HEAD) - _DRIFT_SENTENCES
    rows = rows_that_fit(
        (_drift_row(entity_drift, key, has_baseline=drift.baseline is not None) for entity_drift, key in differing), room
    )
    table = _drift_table(rows, left_out=len(differing) - len(rows))
    return "\n".join((*head, *table, *unmanaged.lines, *notes.lines)).rstrip("\n") + "\n"


def _drift_table(rows: list[str], *, left_out: int) -> Iterator[str]:
    if left_out:
        yield from (f"**{left_out:,} keys have no room here.** `kafka-quotas drift` prints all of them.", "")
    if rows:
        yield from (*_DRIFT_HEAD, *rows, "")


def _drift_row(entity_drift: EntityDrift, key: KeyDrift, *, has_baseline: bool) -> str:
    cells = (
        entity_drift.drift.value,
        code(str(entity_drift.entity)),
        code(key.key),
        amount(key.key, key.live),
        amount(key.key, key.baseline) if has_baseline else "not known",
        amount(key.key, key.desired) + prose(overrides_words(key)) + "".join(f", {words}" for words in drift_sentences(key)),
        code(str(key.source)) if key.source else "no manifest declares it",
    )
    return "| " + " | ".join(in_cell(cell) for cell in cells) + " |"
