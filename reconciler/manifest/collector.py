"""The findings of one file, with the severities of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.model import Entity, Finding, Related, Span, manifest_rules
from reconciler.yaml import YamlMapping, YamlNode


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
        id=rule_id,
        severity=manifest_rules()[rule_id].severity,
        message=message,
        span=span,
        related=tuple(related),
        entity=entity,
        key=key,
    )


MAX_FINDINGS: Final = 100_000
"""Most findings of one file: each costs time and memory, and a few bytes of a file can cause one."""


class Collector:
    """The findings of one file, in the order they are made; ``regexes`` are the different expressions of its selectors.

    ``entity`` and ``owner`` are those of the part that is being read: findings are about the entity. After ``MAX_FINDINGS`` one
    finding reports that there are more, and ``full`` is true. ``content``: the bytes of the file.
    """

    def __init__(self, file: str, content: bytes = b"") -> None:
        self.file = file
        self._content = content
        self.findings: list[Finding] = []
        self.regexes: set[str] = set()
        self.entity: Entity | None = None
        self.owner: str | None = None
        self.full = False

    def line(self, number: int) -> str:
        """A line of the file as it is written, without its end; empty beyond the last one."""
        lines = self._content.decode("utf-8", errors="replace").removeprefix("\ufeff").splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def span(self, node: YamlNode) -> Span:
        """Where a node begins."""
        return Span(file=self.file, line=node.line, column=node.column)

    def key_span(self, node: YamlMapping, name: str) -> Span:
        """Where a key begins."""
        line, column = node.keys[name]
        return Span(file=self.file, line=line, column=column)

    def add(self, rule_id: str, message: str, place: YamlNode | Span, *, key: str | None = None) -> None:
        """Note one finding at a node or a span."""
        if self.full:
            return
        span = place if isinstance(place, Span) else self.span(place)
        entity = self.entity
        if len(self.findings) >= MAX_FINDINGS:
            self.full = True
            rule_id, entity, key = "too-many-findings", None, None
            message = f"the file has more than {MAX_FINDINGS} findings. The rest is not reported. Correct the ones above first"
        self.findings.append(finding(rule_id, message, span, entity=entity, key=key))
