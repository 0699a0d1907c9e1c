"""Entries of manifests with other values, in place: order, comments and style of the file stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, cast

from reconciler.errors import ManifestError
from reconciler.manifest import ClientQuotasDocument, ClusterDocument, RepositoryDocument, read_documents
from reconciler.model import Entity, FileRevision, Span
from reconciler.workflows import LoadedManifests, adjusted, stop_on
from reconciler.yaml import (
    Plain,
    ScalarEdit,
    ScalarEditError,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    add_field,
    add_item,
    edit_scalars,
    has_only,
    read_value,
    read_yaml,
    remove_field,
    scalar_text,
)

EntryPath: TypeAlias = tuple[int, int]
"""The number of a document in its file, and of an entry in its quotas: edits move lines, and neither of these."""
_QUOTAS: Final = "quotas"


def entry_at(content: bytes, place: Span) -> EntryPath | None:
    """The entry whose ``match`` is at this place."""
    return _path(content, lambda entry: _is_at(entry.items.get("match"), place))


def entry_of_value(content: bytes, place: Span) -> EntryPath | None:
    """The entry that has a value of its quotas at this place."""

    def has_value(entry: YamlMapping) -> bool:
        quotas = entry.items.get(_QUOTAS)
        return isinstance(quotas, YamlMapping) and any(_is_at(value, place) for value in quotas.items.values())

    return _path(content, has_value)


def with_override(content: bytes, path: EntryPath, cluster: str, values: Mapping[str, str | None]) -> bytes:
    """The file with an override for this cluster: by key the texts of its values, ``None`` for a key to drop.

    Raises ``ScalarEditError`` where the entry cannot take one in place.
    """
    quotas = ", ".join(f"{key}: {value or 'null'}" for key, value in values.items())
    text = f"{{clusters: [{scalar_text(cluster)}], quotas: {{{quotas}}}}}"
    entry = _entry(content, path)
    overrides = entry.items.get("overrides")
    refusal = _refusal(entry, f"overrides: [{text}]")
    try:
        if isinstance(overrides, YamlSequence) and overrides.items:
            after = add_item(content, overrides, text)
        elif overrides is None:
            after = add_field(content, entry, _QUOTAS, f"overrides: [{text}]")
        else:
            raise refusal
    except (ValueError, IndexError, KeyError):
        raise refusal from None

    def add(data: dict[str, Plain]) -> None:
        earlier = data.get("overrides")
        data["overrides"] = [read_value(text), *(earlier if isinstance(earlier, list) else ())]

    return _checked(content, after, path, add, refusal)


def with_field(content: bytes, path: EntryPath, key: str, text: str) -> bytes:
    """The file with another value for a key of an entry's quotas, or with one more key.

    Raises ``ScalarEditError`` for a value that is more than a scalar, ``KeyError`` for an entry without quotas of its own.
    """
    entry = _entry(content, path)
    quotas = entry.items[_QUOTAS]
    refusal = _refusal(entry, f"{key}: {text}")
    if not isinstance(quotas, YamlMapping):
        raise refusal
    value = quotas.items.get(key)
    if isinstance(value, YamlScalar):
        return edit_scalars(content, [ScalarEdit(line=value.line, column=value.column, old=value.text, new=text)])
    if value is not None or not quotas.items:
        raise refusal
    after = add_field(content, quotas, next(iter(quotas.keys)), f"{key}: {text}")
    return _checked(content, after, path, lambda data: _quotas_of(data).update({key: read_value(text)}), refusal)


def without_field(content: bytes, path: EntryPath, key: str) -> bytes:
    """The file without a key of an entry's quotas. Without any, the entry has ``quotas: {}``, and keeps its place.

    Raises ``ScalarEditError`` and ``ValueError`` where that cannot be done in place, ``KeyError`` for a key that is not there.
    """
    entry = _entry(content, path)
    quotas = entry.items[_QUOTAS]
    refusal = _refusal(entry, "quotas")
    if not isinstance(quotas, YamlMapping):
        raise refusal
    after = remove_field(content, quotas, key, owner=entry.keys[_QUOTAS])
    return _checked(content, after, path, lambda data: _quotas_of(data).pop(key), refusal)


def with_revisions(loaded: LoadedManifests, revisions: Sequence[FileRevision]) -> LoadedManifests:
    """The manifests with the documents of revised and new files. Raises ``ManifestError`` for errors in these files."""
    contents = {revision.path: read_documents(revision.after, revision.path) for revision in revisions}
    stop_on(adjusted([finding for content in contents.values() for finding in content.findings], loaded.repository.lint))
    kept = (document for document in loaded.documents if document.file not in contents)
    revised = [document for content in contents.values() for document in content.documents]
    specs = [document.spec for document in revised if isinstance(document, ClusterDocument)]
    repositories = [document for document in revised if isinstance(document, RepositoryDocument)]
    return replace(
        loaded,
        documents=(*kept, *(document for document in revised if isinstance(document, ClientQuotasDocument))),
        proposed={**loaded.proposed, **{spec.name: spec for spec in specs if spec.name is not None}},
        proposed_repository=repositories[0] if repositories else loaded.proposed_repository,
    )


def require_values(
    before: LoadedManifests,
    revisions: Sequence[FileRevision],
    wanted: Mapping[str | None, Mapping[Entity, Mapping[str, float | None]]],
) -> None:
    """Raise ``ManifestError`` unless revised manifests have these values, and all else as before.

    ``wanted``: by cluster, entity and key; ``None``: no value.
    """
    after = with_revisions(before, revisions)
    for name in before.clusters:
        was, becomes = _values(before, name), _values(after, name)
        for entity, values in wanted.get(name, {}).items():
            whole = {**was.get(entity, {}), **values}
            was[entity] = {key: value for key, value in whole.items() if value is not None}
        wrong = next((entity for entity in was.keys() | becomes.keys() if was.get(entity) != becomes.get(entity)), None)
        if wrong is not None:
            raise ManifestError(f"{wrong} cannot be changed in place: its revised entry would not declare the wanted values")


def _values(loaded: LoadedManifests, cluster: str) -> dict[Entity, dict[str, object]]:
    desired = loaded.desired(loaded.clusters[cluster])
    return {
        entity: {key.value: quota.value for key, quota in each.quotas.items()}
        | {key.value: quota.unit for key, quota in each.units.items()}
        for entity, each in desired.entities.items()
    }


def _path(content: bytes, is_it: Callable[[YamlMapping], bool]) -> EntryPath | None:
    return next((path for path, entry in _entries(read_yaml(content).documents) if is_it(entry)), None)


def _entry(content: bytes, path: EntryPath) -> YamlMapping:
    return dict(_entries(read_yaml(content).documents))[path]


def _entries(documents: Sequence[YamlNode]) -> Iterator[tuple[EntryPath, YamlMapping]]:
    for number, document in enumerate(documents):
        quotas = _node(_node(document, "spec"), _QUOTAS)
        for index, entry in enumerate(quotas.items if isinstance(quotas, YamlSequence) else ()):
            if isinstance(entry, YamlMapping):
                yield (number, index), entry


def _checked(
    before: bytes, after: bytes, path: EntryPath, change_entry: Callable[[dict[str, Plain]], object], refusal: ScalarEditError
) -> bytes:
    """The new content. Raises ``refusal`` unless it means the old one with this change of the entry alone."""
    number, index = path

    def change(documents: list[Plain]) -> None:
        change_entry(cast("dict[str, dict[str, list[dict[str, Plain]]]]", documents[number])["spec"][_QUOTAS][index])

    if not has_only(before, after, change):
        raise refusal
    return after


def _quotas_of(data: dict[str, Plain]) -> dict[str, Plain]:
    return cast("dict[str, Plain]", data[_QUOTAS])


def _refusal(entry: YamlMapping, new: str) -> ScalarEditError:
    return ScalarEditError(ScalarEdit(line=entry.line, column=entry.column, old=_QUOTAS, new=new))


def _is_at(node: YamlNode | None, place: Span) -> bool:
    return node is not None and (node.line, node.column) == (place.line, place.column)


def _node(node: YamlNode | None, name: str) -> YamlNode | None:
    return node.items.get(name) if isinstance(node, YamlMapping) else None
