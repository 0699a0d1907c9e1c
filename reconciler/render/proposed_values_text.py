"""Values that a backtest recommends, as sentences and as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import FileRevision, ProposedValue, ValueProposals, display_name, escaped
from reconciler.render.layout import Block, Style, labelled, line
from reconciler.text import count_of, list_entities, list_some

_SHOWN_CLUSTERS: Final = 3
_SHOWN_ENTITIES: Final = 3


def proposal_lines(proposals: ValueProposals, *, written: bool) -> tuple[Block, ...]:
    """What was proposed. ``written``: the files have it now."""
    return tuple(_blocks(proposals, written=written))


def _blocks(proposals: ValueProposals, *, written: bool) -> Iterator[Block]:
    count = len(proposals.values)
    yield line()
    if not count:
        yield labelled("Proposed: ", Style.STRONG, "no value of the manifests throttles recorded traffic. Nothing to write")
    else:
        done = "written into the manifests" if written else "not written (--dry-run)"
        yield labelled("Proposed: ", Style.STRONG, f"{count_of(count, 'recommended value')}, {done}")
    for value in proposals.values:
        yield from _value(value)
    for kept in proposals.unwritten:
        words = f"{kept.entity}: {kept.key} is recommended as {kept.after}, and was not written: {kept.why}"
        yield labelled("  Warning: ", Style.WARN, words)


def _value(value: ProposedValue) -> Iterator[Block]:
    whose = list_entities(value.entities, _SHOWN_ENTITIES) if value.profile is None else f"profile {display_name(value.profile)}"
    yield line(f"  {value.source}: {value.key} of {whose}: {escaped(value.before)} -> {value.after}")
    if value.is_lower_bound:
        words = "a lower bound: a quota throttled these clients when they were recorded. Judge the traffic after this step again"
        yield line((f"    {words}", Style.WARN))
    if len(value.entities) > 1:
        yield line((f"    the largest that is recommended for the {len(value.entities):,} entities that share it", Style.FAINT))
    if value.clusters:
        names = list_some([display_name(name) for name in value.clusters], _SHOWN_CLUSTERS)
        yield line((f"    also the value of {names}, whose traffic was not judged", Style.FAINT))


def revision_diff(revisions: Sequence[FileRevision]) -> str:
    """The changes of files as a unified diff, with what does not print as escapes."""
    return "".join(map(_diff, revisions))


def _diff(revision: FileRevision) -> str:
    before, after = (content.decode("utf-8").splitlines() for content in (revision.before, revision.after))
    name = escaped(revision.path)
    rows = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
    return "".join(f"{escaped(row)}\n" for row in rows)
