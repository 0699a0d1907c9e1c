"""Drift adopted into the manifests: each entry gets the values of the cluster where it stands, and its comments stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.features.manifest_edits import (
    entry_at,
    read_manifest,
    require_values,
    rewrite_file,
    with_field,
    with_override,
    without_field,
)
from reconciler.features.starting.manifests import quota_files, undeclarable
from reconciler.formats import value_text
from reconciler.manifest import QuotaEntry
from reconciler.model import DriftClass, Entity, EntityDrift, FileRevision, QuotaKey, Quotas, slug_of
from reconciler.workflows import Intent

MOST_ADOPTED: Final = 200
"""Entities of one proposal: a reviewer reads them one by one."""
PROPOSED: Final = (DriftClass.CHANGED, DriftClass.MISSING, DriftClass.ADDED)
_MARK: Final = "# Quotas that were found on the cluster. Move each entry to the manifest of its owner."


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """Manifests with the values of the cluster. ``left``: entities that need a hand, and why."""

    revisions: tuple[FileRevision, ...]
    adopted: tuple[EntityDrift, ...]
    left: tuple[tuple[EntityDrift, str], ...]


def adopt(intent: Intent, drift: Sequence[EntityDrift]) -> Adoption:
    """Revise the manifests in memory. Nothing is written.

    Raises ``FileAccessError`` for a file that cannot be read, and ``ManifestError`` when the result would not mean the state of
    the cluster, or would change anything else.
    """
    loaded, own = intent.loaded, intent.spec.name
    others = [loaded.desired(spec) for name, spec in sorted(loaded.clusters.items()) if name != own]
    shared = {declared.source for desired in others for declared in desired.entities.values()}
    entries = {entry.declared.entity: entry for document in loaded.documents for entry in document.entries}
    left = [(each, f"a proposal adopts {MOST_ADOPTED} entities at most") for each in drift[MOST_ADOPTED:]]
    contents: dict[str, tuple[bytes, bytes]] = {}
    adopted, undeclared = [], []
    for each in drift[:MOST_ADOPTED]:
        if not each.declared:
            undeclared.append(each)
            continue
        declared = intent.desired.entities[each.entity]
        file, entry = declared.source.file, entries.get(each.entity)
        if file not in contents:
            contents[file] = (content := read_manifest(file), content)
        if entry is None or entry.declared.source != declared.source:
            revised: bytes | str = "several entries declare it"
        else:
            revised = _revised(intent, entry, each, contents[file], is_shared=declared.source in shared)
        if isinstance(revised, str):
            left.append((each, revised))
        else:
            contents[file] = contents[file][0], revised
            adopted.append(each)
    added, new = _added(intent, undeclared)
    adopted += added
    left += [(each, "a manifest cannot declare the name or a value") for each in undeclared if each not in added]
    changed = [(file, *versions) for file, versions in sorted(contents.items()) if versions[0] != versions[1]]
    revisions = (*(rewrite_file(file, before, after, paths=intent.paths) for file, before, after in changed), *new)
    require_values(loaded, revisions, {own: {each.entity: {key.key: key.live for key in each.keys} for each in adopted}})
    return Adoption(revisions=revisions, adopted=tuple(adopted), left=tuple(left))


def _revised(
    intent: Intent, entry: QuotaEntry, drift: EntityDrift, contents: tuple[bytes, bytes], *, is_shared: bool
) -> bytes | str:
    """The file with the values of the cluster in an entry, or why it needs a hand.

    ``contents``: the file as it was, and as it is so far: an entry keeps its number, whatever happens to its lines.
    ``is_shared``: other clusters take the values of the entry, so this one gets an override.
    """
    for key in drift.keys:
        if key.unit is not None or key.expiry is not None:
            return f"{key.key} is computed or expires"
    if any(override.clusters.chooses(intent.spec) for override in entry.overrides):
        return "an override of its entry is for this cluster already"
    before, content = contents
    path = entry_at(before, entry.declared.source)
    if path is None:
        return "the entry names other entities, too"
    try:
        values = {key.key: None if key.live is None else value_text(QuotaKey(key.key), key.live) for key in drift.keys}
        if is_shared:
            return with_override(content, path, intent.spec.name or "", values)
        for name, text in values.items():
            content = without_field(content, path, name) if text is None else with_field(content, path, name, text)
    except (ValueError, KeyError, IndexError):
        return "the entry cannot be changed in place"
    return content


def _added(intent: Intent, drift: Sequence[EntityDrift]) -> tuple[list[EntityDrift], list[FileRevision]]:
    """Declare entities that no manifest has, in new files beside the Cluster manifest. Returns those that can be declared."""
    name, span = intent.spec.name, intent.spec.span
    added: dict[Entity, Quotas] = {}
    chosen = []
    for each in drift:
        quotas = {key.key: key.live for key in each.keys if key.live is not None}
        if not any(undeclarable(each.entity, quotas)):
            added[each.entity] = quotas
            chosen.append(each)
    folder = Path(span.file).parent if span is not None else Path(intent.paths[0])
    revisions = []
    for file, text in quota_files(added, name, mark=_MARK):
        stem = f"found-on-{slug_of(name or 'kafka')}-{file.removesuffix('.yaml')}"
        names = (stem, *(f"{stem}-{number}" for number in range(2, 1000)))
        path = str(next(path for path in (folder / f"{each}.yaml" for each in names) if not path.exists()))
        revisions.append(FileRevision(path=path, target=path, before=b"", after=text.partition("\n")[2].encode()))
    return chosen, revisions
