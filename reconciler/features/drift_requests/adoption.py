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
from reconciler.model import DriftClass, Entity, EntityDrift, FileRevision, QuotaKey, Quotas, slug_of
from reconciler.workflows import Intent
from reconciler.yaml import ScalarEditError

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


class _NeedsHandError(Exception):
    """The entry cannot be changed in place. The text is the reason."""


def adopt(intent: Intent, drift: Sequence[EntityDrift]) -> Adoption:
    """Revise the manifests in memory. Nothing is written.

    Raises ``FileAccessError`` for a file that cannot be read, and ``ManifestError`` when the result would not mean the state of
    the cluster, or would change anything else.
    """
    editor = _Editor(intent)
    adopted: list[EntityDrift] = []
    left: list[tuple[EntityDrift, str]] = []
    undeclared: list[EntityDrift] = []
    for each in drift:
        if len(adopted) + len(undeclared) >= MOST_ADOPTED:
            left.append((each, f"a proposal adopts {MOST_ADOPTED} entities at most"))
        elif each.declared:
            try:
                editor.revise(each)
                adopted.append(each)
            except _NeedsHandError as reason:
                left.append((each, str(reason)))
        else:
            undeclared.append(each)
    added = editor.add(undeclared)
    adopted += added
    left += [(each, "a manifest cannot declare the name or a value") for each in undeclared if each not in added]
    revisions = editor.revisions()
    wanted = {each.entity: {key.key: key.live for key in each.keys} for each in adopted}
    require_values(intent.loaded, revisions, {intent.spec.name: wanted})
    return Adoption(revisions=revisions, adopted=tuple(adopted), left=tuple(left))


class _Editor:
    """The contents of the files so far. An entry keeps its number in its file, whatever happens to its lines."""

    def __init__(self, intent: Intent) -> None:
        self._intent = intent
        self._before: dict[str, bytes] = {}
        self._after: dict[str, bytes] = {}
        self._new: dict[str, bytes] = {}
        loaded, own = intent.loaded, intent.spec.name
        others = [loaded.desired(spec) for name, spec in sorted(loaded.clusters.items()) if name != own]
        self._elsewhere = {declared.source for desired in others for declared in desired.entities.values()}
        self._entries = {entry.declared.entity: entry for document in loaded.documents for entry in document.entries}

    def revise(self, drift: EntityDrift) -> None:
        """Give a declared entity the values of the cluster. Raises ``_NeedsHandError``."""
        declared = self._intent.desired.entities[drift.entity]
        entry = self._entries.get(drift.entity)
        file = declared.source.file
        for key in drift.keys:
            if key.unit is not None or key.expiry is not None:
                raise _NeedsHandError(f"{key.key} is computed or expires")
        if entry is None or entry.declared.source != declared.source:
            raise _NeedsHandError("several entries declare it")
        if any(override.clusters.chooses(self._intent.spec) for override in entry.overrides):
            raise _NeedsHandError("an override of its entry is for this cluster already")
        content = self._content(file)
        path = entry_at(self._before[file], declared.source)
        if path is None:
            raise _NeedsHandError("the entry names other entities, too")
        try:
            values = {key.key: None if key.live is None else value_text(QuotaKey(key.key), key.live) for key in drift.keys}
            if declared.source in self._elsewhere:
                content = with_override(content, path, self._intent.spec.name or "", values)
            else:
                for name, text in values.items():
                    content = without_field(content, path, name) if text is None else with_field(content, path, name, text)
        except (ScalarEditError, ValueError, KeyError, IndexError):
            raise _NeedsHandError("the entry cannot be changed in place") from None
        self._after[file] = content

    def add(self, drift: Sequence[EntityDrift]) -> list[EntityDrift]:
        """Declare entities that no manifest has, in new files beside the Cluster manifest. Returns those that can be declared."""
        name = self._intent.spec.name
        added: dict[Entity, Quotas] = {}
        chosen = []
        for each in drift:
            quotas = {key.key: key.live for key in each.keys if key.live is not None}
            if not any(undeclarable(each.entity, quotas)):
                added[each.entity] = quotas
                chosen.append(each)
        span = self._intent.spec.span
        folder = Path(span.file).parent if span is not None else Path(self._intent.paths[0])
        for file, text in quota_files(added, name, mark=_MARK):
            stem = f"found-on-{slug_of(name or 'kafka')}-{file.removesuffix('.yaml')}"
            names = (stem, *(f"{stem}-{number}" for number in range(2, 1000)))
            path = next(path for path in (folder / f"{each}.yaml" for each in names) if not path.exists())
            self._new[str(path)] = text.partition("\n")[2].encode()
        return chosen

    def revisions(self) -> tuple[FileRevision, ...]:
        """Every file that differs. Raises ``FileAccessError``."""
        changed = [
            rewrite_file(file, self._before[file], after, paths=self._intent.paths)
            for file, after in sorted(self._after.items())
            if after != self._before[file]
        ]
        new = [FileRevision(path=path, target=path, before=b"", after=text) for path, text in sorted(self._new.items())]
        return (*changed, *new)

    def _content(self, file: str) -> bytes:
        if file not in self._before:
            self._before[file] = read_manifest(file)
        return self._after.get(file, self._before[file])
