"""Reading fields of one file: its findings, with the severities of the catalogue, its fields by name, and selectors.

A field that is absent, or of another type than the schema wants, is ``None``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.errors import MissingDependencyError
from reconciler.manifest.catalogue import RULES
from reconciler.model import (
    MAX_REGEXES,
    Entity,
    EntityType,
    Finding,
    MatchKind,
    PatternError,
    Related,
    Selector,
    Span,
    TypeMatch,
    compile_regex,
    compose,
)
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

_KINDS: Final = {kind.value: kind for kind in MatchKind if kind is not MatchKind.NAME}


def finding(
    rule_id: str,
    message: str,
    span: Span,
    *,
    related: Sequence[Related] = (),
    entity: Entity | None = None,
    key: str | None = None,
) -> Finding:
    """A finding of the catalogue, with the rule's own severity."""
    return Finding(
        id=rule_id, severity=RULES[rule_id].severity, message=message, span=span, related=tuple(related), entity=entity, key=key
    )


MAX_FINDINGS: Final = 100_000
"""Most findings of one file: each costs time and memory, and a few bytes of a file can cause one."""


class Collector:
    """The findings of one file, in the order they are made; ``regexes`` are the different expressions of its selectors.

    After ``MAX_FINDINGS`` one finding reports that there are more, and ``full`` is true. ``content``: the bytes of the file.
    """

    def __init__(self, file: str, content: bytes = b"") -> None:
        self.file = file
        self._content = content
        self.findings: list[Finding] = []
        self.regexes: set[str] = set()
        self.full = False

    def line(self, number: int) -> str:
        """A line of the file as it is written, without its end; empty beyond the last one."""
        lines = self._content.decode("utf-8", errors="replace").removeprefix("\ufeff").splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def span(self, node: YamlNode) -> Span:
        """Where a node begins."""
        return Span(file=self.file, line=node.line, column=node.column)

    def add(
        self, rule_id: str, message: str, place: YamlNode | Span, *, entity: Entity | None = None, key: str | None = None
    ) -> None:
        """Note one finding at a node or a span."""
        if self.full:
            return
        span = place if isinstance(place, Span) else self.span(place)
        if len(self.findings) >= MAX_FINDINGS:
            self.full = True
            rule_id, entity, key = "too-many-findings", None, None
            message = f"the file has more than {MAX_FINDINGS} findings. The rest is not reported. Correct the ones above first"
        self.findings.append(finding(rule_id, message, span, entity=entity, key=key))


def mapping(node: YamlNode | None, name: str) -> YamlMapping | None:
    """A field that is a mapping."""
    value = node.items.get(name) if isinstance(node, YamlMapping) else None
    return value if isinstance(value, YamlMapping) else None


def scalar(node: YamlNode | None, name: str) -> YamlScalar | None:
    """A field that is a scalar and not null."""
    value = node.items.get(name) if isinstance(node, YamlMapping) else None
    return value if isinstance(value, YamlScalar) and value.data is not None else None


def text(node: YamlNode | None, name: str) -> str | None:
    """A field's text, as written."""
    value = scalar(node, name)
    return value.text if value is not None else None


def items(node: YamlNode | None, name: str) -> tuple[YamlNode, ...]:
    """The items of a field that is a list; none when it is not there."""
    value = node.items.get(name) if isinstance(node, YamlMapping) else None
    return tuple(value.items) if isinstance(value, YamlSequence) else ()


def texts(node: YamlNode | None, name: str) -> tuple[str, ...]:
    """The texts of a list field."""
    return tuple(item.text for item in items(node, name) if isinstance(item, YamlScalar) and item.data is not None)


def selectors(node: YamlNode | None, out: Collector) -> tuple[Selector, ...]:
    """A list of selectors; items that the schema has refused are left out."""
    if not isinstance(node, YamlSequence):
        return ()
    made = (selector(item, out) for item in node.items)
    return tuple(selector for selector in made if selector is not None)


def selector(node: YamlNode | None, out: Collector) -> Selector | None:
    """One selector, or ``None`` when it shows nothing that can be used."""
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
        return f"the file has more than {MAX_REGEXES} different expressions. Write a prefix or a glob"
    try:
        compile_regex(text)
    except (PatternError, MissingDependencyError) as error:
        return str(error)
    return None
