"""Reading fields of one file: its findings, with the severities of the catalogue, and its fields by name.

A field that is absent, or of another type than the schema wants, is ``None``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.manifest.catalogue import RULES
from reconciler.model import Entity, Finding, Related, Span
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence


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

    After ``MAX_FINDINGS`` one finding reports that there are more, and ``full`` is true.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.regexes: set[str] = set()
        self.full = False

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
            message = f"the file has more than {MAX_FINDINGS} findings; the rest is not reported; correct the ones above first"
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
