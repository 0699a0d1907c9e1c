"""Drift for a terminal: what differs and why, key by key on all sides, and one line that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.model.drift import BaselineOrigin, Drift, DriftClass, EntityDrift, KeyDrift
from reconciler.model.entity import display_name
from reconciler.render.amounts import amount
from reconciler.render.plan_text import cluster_title
from reconciler.render.styled import Line, Style, line

_LOOK: Final = {
    DriftClass.UNAPPLIED: (">", Style.CREATE, "merged, and not applied yet"),
    DriftClass.CHANGED: ("~", Style.UPDATE, "changed behind the manifests' back"),
    DriftClass.MISSING: ("-", Style.DELETE, "removed behind the manifests' back"),
    DriftClass.DIFFERS: ("~", Style.UPDATE, "not what the manifests say"),
    DriftClass.UNMANAGED: ("?", Style.FAINT, "no manifest declares it"),
}
_ORIGIN: Final = {"broker": "its brokers", "zookeeper": "ZooKeeper", "snapshot": "a snapshot"}


def drift_lines(drift: Drift, *, show_unmanaged: bool = False) -> tuple[Line, ...]:
    """The whole comparison, readable from top to bottom; unmanaged entities are counted, and listed when asked for."""
    return tuple(_lines(drift, show_unmanaged=show_unmanaged))


def _lines(drift: Drift, *, show_unmanaged: bool) -> Iterator[Line]:
    read = drift.observed
    yield line(
        ("Drift of ", Style.STRONG),
        (cluster_title(drift.cluster), Style.STRONG),
        f", read from {_ORIGIN[read.origin.value]} at {read.at:%Y-%m-%d %H:%M:%S} UTC{_against(drift.baseline)}",
    )
    yield line()
    shown = [one for one in drift.entities if show_unmanaged or one.drift is not DriftClass.UNMANAGED]
    for one in shown:
        yield from _entity(one, has_baseline=drift.baseline is not None)
    if shown:
        yield line()
    for note in drift.notes:
        yield line(("Note: ", Style.FAINT), note)
    if not drift.complete:
        yield line(("Note: ", Style.FAINT), "only some manifests were read; only what they declare was compared")
    yield line((summary_sentence(drift), Style.STRONG))


def summary_sentence(drift: Drift) -> str:
    """Counts of entities, or that nothing differs."""
    counts = drift.counts
    rest = f"{counts[DriftClass.IN_SYNC]} in sync, {counts[DriftClass.UNMANAGED]} unmanaged"
    if drift.ignored:
        rest += f", {drift.ignored} ignored"
    if not drift.differs:
        return f"No drift: the cluster has what the manifests say ({rest})."
    if drift.baseline is None:
        return f"{_differ(counts[DriftClass.DIFFERS])}; {rest}."
    named = (DriftClass.UNAPPLIED, DriftClass.CHANGED, DriftClass.MISSING)
    return f"{', '.join(f'{counts[each]} {each.value}' for each in named)}; {rest}."


def _differ(count: int) -> str:
    return "1 differs" if count == 1 else f"{count} differ"


def _against(origin: BaselineOrigin | None) -> str:
    if origin is None:
        return ""
    commit = f" ({origin.commit[:12]})" if origin.commit else ""
    return f"; baseline {display_name(origin.name)}{commit}"


def _entity(one: EntityDrift, *, has_baseline: bool) -> Iterator[Line]:
    sign, style, why = _LOOK[one.drift]
    yield line((f"  {sign} {one.entity}", style), (f"   ({one.drift.value}: {why})", Style.FAINT))
    width = max((len(key.key) for key in one.keys), default=0)
    for key in one.keys:
        yield _key(key, width, one.drift, has_baseline=has_baseline)


def _key(key: KeyDrift, width: int, drift: DriftClass, *, has_baseline: bool) -> Line:
    live = f"live {amount(key.key, key.live)}"
    if drift is DriftClass.UNMANAGED:
        return line(f"      {key.key:<{width}}  {live}")
    baseline = f", at the baseline {amount(key.key, key.baseline)}" if has_baseline else ""
    place = (f"   {key.source}", Style.FAINT) if key.source else ""
    return line(f"      {key.key:<{width}}  {live}{baseline}, declared {amount(key.key, key.desired)}", place)
