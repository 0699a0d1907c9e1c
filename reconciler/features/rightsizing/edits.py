"""Proposed values in the manifests, each where its number stands, in the files here or in a pull request for each owner."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.errors import FileAccessError
from reconciler.features.manifest_edits import read_manifest, require_values, rewrite_file, write_revisions
from reconciler.features.pull_requests.proposal_branch import ProposalText, proposals_from
from reconciler.features.rightsizing.measuring import SizingReport
from reconciler.features.rightsizing.proposals import owner_of_change
from reconciler.features.rightsizing.report import history_words, quota_table
from reconciler.features.rightsizing.sizing import SizedQuota
from reconciler.formats import value_like
from reconciler.model import Entity, FileRevision, Span, display_name, escaped, slug_of
from reconciler.render import blocks_markdown, code, prose, shorten
from reconciler.text import count_of
from reconciler.workflows import Intent
from reconciler.yaml import ScalarEdit, ScalarEditError, edit_scalars

_GENERATED: Final = re.compile(rb"(?i)\A(?:[^\n]*\n){0,4}\s*#[^\n]*\bdo not (?:edit|modify|change)\b")
"""A comment at the begin of a file that a program writes."""
_IN_PLACE: Final = "the value cannot be replaced in place. Write it by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEdits:
    """Files with the proposed values, the quotas that they are of, and those that stay as they are, with the reason."""

    revisions: tuple[FileRevision, ...]
    written: tuple[SizedQuota, ...]
    left: tuple[tuple[SizedQuota, str], ...]


def write_values(intent: Intent, report: SizingReport) -> Iterator[str]:
    """Change the files here. Sentences state what was done. Raises ``FileAccessError`` and ``ManifestError``."""
    edits = revise_values(intent, report.proposed)
    yield from left_sentences(edits)
    write_revisions(edits.revisions)
    if edits.revisions:
        files = ", ".join(escaped(revision.path) for revision in edits.revisions)
        yield f"{count_of(len(edits.written), 'limit')} changed in {files}. Check them with plan."


def left_sentences(edits: ValueEdits) -> Iterator[str]:
    """Yield a sentence for each proposed value that is not written, with the reason."""
    for quota, reason in edits.left:
        yield f"{quota.source}: {quota.key} of {quota.entity} is left as it is: {reason}."


def revise_values(intent: Intent, quotas: Sequence[SizedQuota]) -> ValueEdits:
    """Revise the manifests in memory. Nothing is written.

    Raises ``FileAccessError`` for a file that cannot be read, and ``ManifestError`` when the result would mean anything else.
    """
    files: dict[str, dict[Span, SizedQuota]] = {}
    for quota in quotas:
        files.setdefault(quota.source.file, {}).setdefault(quota.source, quota)
    revisions: list[FileRevision] = []
    reasons: dict[Span, str] = {}
    for file, places in sorted(files.items()):
        revision, refused = _revise(intent, file, places)
        reasons |= refused
        revisions += [] if revision is None else [revision]
    written = tuple(quota for quota in quotas if quota.source not in reasons)
    values = {quota.source: quota.value for quota in written}
    wanted: dict[str | None, dict[Entity, dict[str, float | None]]] = {}
    for name, spec in intent.loaded.clusters.items() if values else ():
        of_cluster = wanted.setdefault(name, {})
        for entity, each in intent.loaded.desired(spec).entities.items():
            changed = {key.value: values[quota.source] for key, quota in each.quotas.items() if quota.source in values}
            if changed:
                of_cluster[entity] = changed
    require_values(intent.loaded, revisions, wanted)
    left = tuple((quota, reasons[place]) for places in files.values() for place, quota in places.items() if place in reasons)
    return ValueEdits(revisions=tuple(revisions), written=written, left=left)


def _revise(intent: Intent, file: str, places: Mapping[Span, SizedQuota]) -> tuple[FileRevision | None, dict[Span, str]]:
    before = read_manifest(file)
    if _GENERATED.match(before):
        return None, dict.fromkeys(places, "a program generates its file. Change what that is made of")
    edits = [_edit(intent, quota) for _, quota in sorted(places.items(), key=lambda each: (each[0].line, each[0].column))]
    after, refused = _apply(before, edits)
    reasons = {place: _IN_PLACE for place in places if (place.line, place.column) in refused}
    if len(reasons) == len(places):
        return None, reasons
    try:
        return rewrite_file(file, before, after, paths=intent.paths), reasons
    except FileAccessError as error:
        return None, dict.fromkeys(places, str(error).rstrip("."))


def _edit(intent: Intent, quota: SizedQuota) -> ScalarEdit:
    old = intent.desired.entities[quota.entity].quotas[quota.key].text
    place = quota.source
    return ScalarEdit(line=place.line, column=place.column, old=old, new=value_like(quota.key, quota.value or 0.0, old))


def _apply(content: bytes, edits: Sequence[ScalarEdit]) -> tuple[bytes, set[tuple[int, int]]]:
    """The file with as many of the edits as can be made, and the places of the others. ``edits``: in the order of the file."""
    try:
        return edit_scalars(content, edits), set()
    except ScalarEditError:
        if len(edits) == 1:
            return content, {(edits[0].line, edits[0].column)}
    middle = len(edits) // 2
    # From the end on: an edit moves what follows in its line.
    content, refused = _apply(content, edits[middle:])
    content, more = _apply(content, edits[:middle])
    return content, refused | more


_NAME: Final = 100
_TABLE: Final = 50_000


def keep_requests(intent: Intent, report: SizingReport) -> Iterator[str]:
    """Open, update or close the request of each owner of the cluster. Sentences state what was done.

    Raises ``ForgeError``, ``GitError``, ``UsageError`` without a token, ``FileAccessError`` and ``ManifestError``.
    """
    with proposals_from(intent.paths[0]) as proposals:
        if (refusal := proposals.refusal()) is not None:
            yield refusal
            return
        folder = f"kafka-quotas/rightsize/{slug_of(report.cluster or 'kafka')}"
        of_owners = {f"{folder}/{_leaf(owner)}": (owner, quotas) for owner, quotas in _by_owner(report.proposed)}
        for name in proposals.below(folder):
            if name not in of_owners:
                yield from proposals.close(name, because="No limit of its owner needs a change now")
        for name, (owner, quotas) in of_owners.items():
            edits = revise_values(intent, quotas)
            yield from left_sentences(edits)
            if edits.written:
                yield from proposals.keep(name, _text(report, owner, edits), edits.revisions)
            else:
                yield from proposals.close(name, because="No limit of its owner can be changed in place")


def _text(report: SizingReport, owner: str | None, edits: ValueEdits) -> ProposalText:
    """Return the request for an owner, in which a reviewer sees each change with its use and its backtest."""
    quotas, cluster = edits.written, report.cluster or "kafka"
    limits = count_of(len(quotas), "limit")
    rows = sorted([str(quota.entity), quota.key.value, quota.limit, quota.value or 0.0] for quota in quotas)
    whose = "" if owner is None else f" of {shorten(escaped(display_name(owner)), _NAME)}"
    section = blocks_markdown((quota_table(quotas),), room=_TABLE)
    lines = [
        f"**Merge to change these limits.** Each was compared with {prose(history_words(report))}.",
        "The backtest replays the same traffic under all proposed limits. The usual checks of a pull request apply.",
        "",
        *section.lines,
        *(("", f"{count_of(section.left_out, 'change')} more did not fit here: see the diff.") if section.left_out else ()),
        "",
        f"To keep a limit, add {code('rightsize: never')} and a {code('note')} with the reason to its entry.",
        "",
        *(f"- {code(str(quota.entity), limit=_NAME)}: {prose(reason)}" for quota, reason in edits.left),
    ]
    return ProposalText(
        title=f"Rightsize {shorten(escaped(display_name(cluster)), _NAME)}: {limits}{whose}",
        body="\n".join(lines).rstrip() + "\n",
        message=f"Change {limits} of {slug_of(cluster)} to what clients use",
        content=f"rightsize sha256:{hashlib.sha256(json.dumps(rows).encode()).hexdigest()}",
        purpose=f"{count_of(len(quotas), 'change')}{whose}",
        subject="proposal",
    )


def _by_owner(quotas: Sequence[SizedQuota]) -> Iterator[tuple[str | None, list[SizedQuota]]]:
    """The changes of each owner, in their order; ``None``: of no owner, or values that several owners share."""
    places: dict[Span, list[SizedQuota]] = {}
    for quota in quotas:
        places.setdefault(quota.source, []).append(quota)
    owners: dict[str | None, list[SizedQuota]] = {}
    for some in places.values():
        owners.setdefault(owner_of_change(some), []).extend(some)
    yield from owners.items()


def _leaf(owner: str | None) -> str:
    return "no-owner" if owner is None else f"of-{slug_of(owner)}"
