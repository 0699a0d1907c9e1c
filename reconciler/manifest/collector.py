"""Gathers findings about one file while it is read, with the severities of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.manifest.catalogue import RULES
from reconciler.model import Entity, Finding, Related, Span
from reconciler.yaml import YamlNode


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
