"""Selectors of a manifest into selectors of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.errors import MissingDependencyError
from reconciler.manifest.collector import Collector
from reconciler.model import MAX_REGEXES, EntityType, MatchKind, PatternError, Selector, TypeMatch, compile_regex, compose
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

_KINDS: Final = {kind.value: kind for kind in MatchKind if kind is not MatchKind.NAME}


def selectors(node: YamlNode | None, out: Collector) -> tuple[Selector, ...]:
    """A list of selectors; items that the schema has refused are left out."""
    if not isinstance(node, YamlSequence):
        return ()
    made = (selector(item, out) for item in node.items)
    return tuple(one for one in made if one is not None)


def selector(node: YamlNode | None, out: Collector) -> Selector | None:
    """One selector, or ``None`` when it says nothing that can be used."""
    if not isinstance(node, YamlMapping):
        return None
    types = tuple(_types(node, out))
    strict = node.data.get("strict") is True
    return Selector(types=types, strict=strict) if types else None


def _types(node: YamlMapping, out: Collector) -> Iterator[tuple[str, TypeMatch]]:
    for entity_type in EntityType:
        wanted = node.items.get(entity_type.value)
        match = _type_match(wanted, out) if wanted is not None else None
        if match is not None:
            yield entity_type.value, match


def _type_match(node: YamlNode, out: Collector) -> TypeMatch | None:
    if isinstance(node, YamlScalar):
        return TypeMatch(kind=MatchKind.NAME, text=node.text) if node.data is not None else None
    if not isinstance(node, YamlMapping) or len(node.items) != 1:
        return None
    word, value = next(iter(node.items.items()))
    kind = _KINDS.get(word)
    if kind is None or not isinstance(value, YamlScalar):
        return None
    if kind in (MatchKind.DEFAULT, MatchKind.NAMED, MatchKind.ANY):
        return TypeMatch(kind=kind)
    if kind is MatchKind.REGEX and (problem := _regex_problem(value.text, out)):
        out.add(
            "invalid-selector",
            compose(
                "{value} cannot be used as a regular expression: {problem}",
                value=shown_part(value.text),
                problem=problem,
            ),
            value,
        )
        return None
    return TypeMatch(kind=kind, text=value.text)


def _regex_problem(text: str, out: Collector) -> str | None:
    out.regexes.add(text)
    if len(out.regexes) > MAX_REGEXES:
        return f"the file has more than {MAX_REGEXES} different expressions; write a prefix or a glob"
    try:
        compile_regex(text)
    except (PatternError, MissingDependencyError) as error:
        return str(error)
    return None
