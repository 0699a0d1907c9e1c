"""What the files of another tool declare, and what in them could not be converted; gathered file by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.formats import YamlNode, YamlProblem
from reconciler.importing.catalogue import IMPORT_RULES
from reconciler.model import Entity, Finding, Related, Severity, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedQuota:
    """One entity with all its keys, where it is written, and the cluster when the file names one."""

    entity: Entity
    quotas: Mapping[str, float]
    span: Span
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The quotas of some files in the order in which they are written, and the findings."""

    quotas: tuple[ImportedQuota, ...]
    findings: tuple[Finding, ...]


class Gatherer:
    """Collects what is found in one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.quotas: list[ImportedQuota] = []
        self.findings: list[Finding] = []

    def span(self, node: YamlNode) -> Span:
        """Where a node of YAML begins."""
        return Span(file=self.file, line=node.line, column=node.column)

    def at(self, line: int, column: int = 1) -> Span:
        """A place in the file."""
        return Span(file=self.file, line=line, column=column)

    def refuse(
        self,
        rule_id: str,
        message: str,
        place: YamlNode | Span,
        *,
        entity: Entity | None = None,
        key: str | None = None,
        related: Sequence[Related] = (),
    ) -> None:
        """Note what is not converted, and why. ``rule_id`` is of the import's own catalogue, or of the manifests'."""
        span = place if isinstance(place, Span) else self.span(place)
        rule = IMPORT_RULES.get(rule_id)
        severity = rule.severity if rule else Severity.ERROR
        found = Finding(id=rule_id, severity=severity, message=message, span=span, entity=entity, key=key, related=tuple(related))
        self.findings.append(found)

    def problems(self, problems: Sequence[YamlProblem]) -> bool:
        """Note what is wrong with a file as YAML; true when there is something."""
        for problem in problems:
            self.refuse(problem.id, problem.message, self.at(problem.line, problem.column))
        return bool(problems)

    def add(self, entity: Entity, quotas: Mapping[str, float], place: YamlNode | Span, *, cluster: str | None = None) -> None:
        """Note one converted entity; one without any key declares nothing, and is only mentioned."""
        span = place if isinstance(place, Span) else self.span(place)
        if not quotas:
            self.refuse("import-left-out", f"{entity} has no quota here, so there is nothing to declare", span, entity=entity)
            return
        self.quotas.append(ImportedQuota(entity=entity, quotas=dict(quotas), span=span, cluster=cluster))

    def found(self) -> Found:
        """Everything gathered so far."""
        return Found(quotas=tuple(self.quotas), findings=tuple(self.findings))
