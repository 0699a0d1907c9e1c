"""Gathers findings about one file while it is read, with the severities of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.formats.yaml_nodes import YamlNode
from reconciler.manifest.catalogue import RULES
from reconciler.model.entity import Entity
from reconciler.model.finding import Finding, Related
from reconciler.model.source import Span


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


class Collector:
    """The findings of one file, in the order they are made."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Finding] = []

    def span(self, node: YamlNode) -> Span:
        """Where a node begins."""
        return Span(file=self.file, line=node.line, column=node.column)

    def add(
        self, rule_id: str, message: str, place: YamlNode | Span, *, entity: Entity | None = None, key: str | None = None
    ) -> None:
        """Note one finding at a node or a span."""
        span = place if isinstance(place, Span) else self.span(place)
        self.findings.append(finding(rule_id, message, span, entity=entity, key=key))
