"""Values of one cluster, written as an override into the entry whose values several clusters share."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from reconciler.model import Span
from reconciler.yaml import (
    Plain,
    ScalarEdit,
    ScalarEditError,
    YamlMapping,
    YamlNode,
    YamlSequence,
    field_before,
    insert,
    item_first,
    read_yaml,
    scalar_text,
)


def with_override(content: bytes, place: Span, cluster: str, values: Mapping[str, str]) -> bytes:
    """The file with an override for this cluster, by key the texts of its values, in the entry that has a value at ``place``.

    Raises ``ScalarEditError`` where the entry does not have its values at that place, or cannot take an override in place.
    """
    quotas = ", ".join(f"{key}: {value}" for key, value in values.items())
    text = f"{{clusters: [{scalar_text(cluster)}], quotas: {{{quotas}}}}}"
    refusal = ScalarEditError(ScalarEdit(line=place.line, column=place.column, old="quotas", new=f"overrides: [{text}]"))
    documents = read_yaml(content).documents
    place_of_entry = next((each for each in _entries(documents) if _has_value_at(each[2], place)), None)
    if place_of_entry is None:
        raise refusal
    number, index, entry = place_of_entry
    overrides = entry.items.get("overrides")
    try:
        if isinstance(overrides, YamlSequence) and overrides.items:
            insertion = item_first(overrides, text, content)
        elif overrides is None:
            insertion = field_before(entry, "quotas", f"overrides: [{text}]", content)
        else:
            raise refusal
        after = insert(content, insertion)
    except (ValueError, IndexError):
        raise refusal from None
    wanted = [copy.deepcopy(document.data) for document in documents]
    data = cast("dict[str, list[Plain]]", _field(wanted[number], "spec"))["quotas"][index]
    assert isinstance(data, dict)
    earlier = data.get("overrides")
    data["overrides"] = [read_yaml(text.encode("utf-8")).documents[0].data, *(earlier if isinstance(earlier, list) else ())]
    stream = read_yaml(after)
    if stream.problems or [document.data for document in stream.documents] != wanted:
        raise refusal
    return after


def _entries(documents: Sequence[YamlNode]) -> Iterator[tuple[int, int, YamlMapping]]:
    """The entries of quotas, with the numbers of their documents and their own."""
    for number, document in enumerate(documents):
        quotas = _node(_node(document, "spec"), "quotas")
        for index, entry in enumerate(quotas.items if isinstance(quotas, YamlSequence) else ()):
            if isinstance(entry, YamlMapping):
                yield number, index, entry


def _has_value_at(entry: YamlMapping, place: Span) -> bool:
    quotas = entry.items.get("quotas")
    values = quotas.items.values() if isinstance(quotas, YamlMapping) else ()
    return any((value.line, value.column) == (place.line, place.column) for value in values)


def _node(node: YamlNode | None, name: str) -> YamlNode | None:
    return node.items.get(name) if isinstance(node, YamlMapping) else None


def _field(data: Plain, name: str) -> Plain:
    return data[name] if isinstance(data, dict) else None
