"""One file's bytes into documents and findings: YAML, schema, then meaning, all findings of all three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from reconciler.formats import API_VERSION, SchemaProblem, check
from reconciler.hooks import added, load
from reconciler.manifest.documents import Document
from reconciler.model import KNOWN_KEYS, Entity, EntityType, Filling, Finding, Related, Span, compose, manifest_rules
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, read_yaml

_KINDS: Final = {
    "ClientQuotas": ("client-quotas", "reconciler.manifest.client_quotas:CLIENT_QUOTAS"),
    "Cluster": ("cluster", "reconciler.manifest.cluster_document:CLUSTER"),
    "Repository": ("repository", "reconciler.manifest.repository_document:REPOSITORY"),
}
"""By kind: the schema, and the place of the shape, which is loaded when a file has the kind."""
_new: Final = tuple.__new__  # in half the time, and each value has a place
_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """What one file declares."""

    documents: tuple[Document, ...]
    findings: tuple[Finding, ...]


def read_documents(content: bytes, file: str) -> FileContent:
    """Read one file; never raises. ``file`` is the path for spans."""
    out = Collector(file)
    stream = read_yaml(content)
    for problem in stream.problems:
        out.add(problem.id, problem.message, Span(file=file, line=problem.line, column=problem.column))
    documents = [made for root in stream.documents if (made := _document(root, out)) is not None]
    return FileContent(documents=tuple(documents), findings=tuple(out.findings))


def _document(root: YamlNode, out: Collector) -> Document | None:
    if not isinstance(root, YamlMapping):
        out.add("unknown-document", f"this YAML document is not a manifest: it is not a mapping. {_EXCLUDE}", root)
        return None
    kind = _kind(root, out)
    if kind is None:
        return None
    schema, shape = _KINDS[kind] if kind in _KINDS else _kinds_of_features()[kind]
    for problem in check(root, schema, most=MAX_FINDINGS):
        _report(problem, out)
        if out.full:
            return None
    document: Document = load(shape).read(root, out)
    return document


def _kinds_of_features() -> dict[str, tuple[str, str]]:
    """Return the schema's name and the place of the shape, by kind."""
    return {kind: (schema, place) for kind, schema, place in added("MANIFEST_KINDS")}


_EXCLUDE: Final = "Write apiVersion and kind, or list the file under spec.exclude in kafka-quotas.yaml"


def _kind(root: YamlMapping, out: Collector) -> str | None:
    version, kind = root.items.get("apiVersion"), root.items.get("kind")
    if version is None or kind is None:
        missing = "apiVersion" if version is None else "kind"
        out.add("unknown-document", f"this YAML document is not a manifest: it has no {missing}. {_EXCLUDE}", root)
        return None
    for node, known in ((version, (API_VERSION,)), (kind, tuple(_KINDS))):
        word = node.text if isinstance(node, YamlScalar) else "a list or mapping"
        if word not in known and (node is version or word not in (more := _kinds_of_features())):
            field = "apiVersion" if node is version else "kind"
            message = compose(
                "the {field} {word} is not known{hint}",
                field=field,
                word=shown_part(word),
                hint=did_you_mean(word, known if node is version else (*known, *more)),
            )
            out.add(
                "unknown-document",
                f"{message} (a file that is not a manifest goes under spec.exclude in kafka-quotas.yaml)",
                node,
            )
            return None
    return kind.text if isinstance(kind, YamlScalar) else None


def _report(problem: SchemaProblem, out: Collector) -> None:
    """A schema problem as a finding, with a more telling id and message where there is one."""
    last = problem.path[-1] if problem.path else None
    if last in KNOWN_KEYS and "quotas" in problem.path and isinstance(problem.value, str | int | float | None):
        # The value's own grammar says it better.
        return
    rule_id, message = problem.id, problem.message
    where = problem.path[-2] if len(problem.path) > 1 else None
    if problem.id == "unknown-field":
        rule_id, message = _unknown_field(where, problem)
    elif last in _TYPES and problem.value in (None, ""):
        rule_id = "empty-name"
        message = f"the {last} has no name. Quote the name if it is null or ~, or write {{default: true}}"
    out.add(rule_id, message, Span(file=out.file, line=problem.line, column=problem.column))


def _unknown_field(where: str | int | None, problem: SchemaProblem) -> tuple[str, str]:
    name = str(problem.path[-1])
    if where == "quotas":
        return "unknown-quota-key", compose(
            "{name} is not a quota key{hint}", name=shown_part(name), hint=did_you_mean(name, KNOWN_KEYS)
        )
    if where == "match":
        return "unknown-entity-type", compose(
            "{name} is not an entity type{hint}", name=shown_part(name), hint=did_you_mean(name, _TYPES)
        )
    return problem.id, problem.message


def finding(
    rule_id: str,
    message: str,
    span: Span,
    *,
    related: Sequence[Related] = (),
    entity: Entity | None = None,
    key: str | None = None,
    **names: Filling,
) -> Finding:
    """A finding of the catalogue, with the rule's own severity. ``names`` fill the message: text as that of a file, in quotes."""
    if names:
        fillings = {name: shown_part(text) if type(text) is str else text for name, text in names.items()}
        message = compose(message, **({"entity": entity} if entity is not None else {}), **fillings)
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
    """The findings of one file, in the order they are made.

    ``entity`` and ``owner`` are those of the part that is being read: findings are about the entity. After ``MAX_FINDINGS`` one
    finding reports that there are more, and ``full`` is true.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.entity: Entity | None = None
        self.owner: str | None = None
        self.full = False

    def span(self, node: YamlNode) -> Span:
        """Return the place where a node begins."""
        return _new(Span, (self.file, node.line, node.column))

    def key_span(self, node: YamlMapping, name: str) -> Span:
        """Return the place where a key begins."""
        line, column = node.keys[name]
        return Span(file=self.file, line=line, column=column)

    def add(self, rule_id: str, message: str, place: YamlNode | Span, *, key: str | None = None, **names: Any) -> None:
        """Note one finding at a node or a span. ``names`` fill the message, as in ``finding``."""
        if self.full:
            return
        span = place if isinstance(place, Span) else self.span(place)
        entity = self.entity
        if len(self.findings) >= MAX_FINDINGS:
            self.full = True
            rule_id, entity, key, names = "too-many-findings", None, None, {}
            message = f"the file has more than {MAX_FINDINGS} findings. The rest is not reported. Correct the ones above first"
        self.findings.append(finding(rule_id, message, span, entity=entity, key=key, **names))
