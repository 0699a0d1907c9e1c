"""Move in from another tool: its quota files as manifests, all of them or, if so asked, what can be converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.features.importing.import_result import ImportedQuota, ImportResult
from reconciler.features.importing.resources import read_jikkou
from reconciler.features.importing.strimzi import read_strimzi
from reconciler.features.importing.terraform import read_terraform
from reconciler.features.starting.export import require_free, schema_files, write_files
from reconciler.features.starting.manifests import ExportedFile, emit_clusters
from reconciler.manifest import UnreadableError, name_problems, read_file
from reconciler.model import (
    DEFAULT,
    Entity,
    Finding,
    Related,
    Severity,
    Span,
    compose,
    display_name,
    escaped,
    in_order,
    manifest_rules,
)

MARK: Final = "# Written by kafka-quotas import"
_SUFFIXES: Final = {
    "jikkou": (".yaml", ".yml", ".json"),
    "strimzi": (".yaml", ".yml", ".json"),
    "terraform": (".tfstate", ".tf", ".tofu"),
}
"""The files of a folder that are read for each tool; a file that is named is always read."""

TOOLS: Final = tuple(_SUFFIXES)

_UNREAD: Final = frozenset({"file-not-found", "file-not-readable", "not-a-file", "file-too-large"})
"""A file that is not read at all is not a part that could not be converted: nothing is written then, partial or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """What was found and written. ``entities`` counts what could be converted, whether it was written or not."""

    findings: tuple[Finding, ...]
    files: tuple[ExportedFile, ...]
    """What was written, relative to the folder; nothing, when something could not be converted and that was not allowed."""
    entities: int
    clusters: int
    sources: int
    """How many files were read."""

    @property
    def unconverted(self) -> int:
        """The number of things that could not be converted."""
        return _unconverted(self.findings)

    @property
    def written(self) -> bool:
        """False when the folder is as it was."""
        return bool(self.files)


def import_files(
    tool: str, paths: Sequence[str], *, folder: Path, overwrite: bool = False, partial: bool = False
) -> ImportSummary:
    """Read the files of one tool (a folder stands for its files), then write manifests to ``folder``.

    Nothing is written when anything could not be converted, unless ``partial``, or when nothing could. Raises ``UsageError`` for
    an unknown tool, and ``FileAccessError`` when the folder is not empty (without ``overwrite``) or cannot be written.
    """
    if tool not in _SUFFIXES:
        msg = f"--from takes one of {', '.join(TOOLS)}, not {display_name(tool)}"
        raise UsageError(msg)
    require_free(folder, overwrite=overwrite)
    findings: list[Finding] = []
    quotas: list[ImportedQuota] = []
    sources = 0
    for path in paths:
        read = [_read(tool, file) for file in _files_of(tool, path)]
        sources += len(read)
        if not any(result.quotas or _unconverted(result.findings) for result in read):
            findings.append(_nothing(tool, path))
        for result in read:
            findings += result.findings
            quotas += result.quotas
    kept = list(_clean(_one_each(_with_clusters(list(_by_namespace(quotas, findings)), findings), findings), findings))
    states: dict[str | None, dict[Entity, Mapping[str, float]]] = {}
    for quota in kept:
        states.setdefault(quota.cluster, {})[quota.entity] = quota.quotas
    # The same value of one place may be refused for several clusters.
    distinct = tuple(dict.fromkeys(in_order(findings)))
    files: tuple[ExportedFile, ...] = ()
    if kept and not any(
        finding.severity is Severity.ERROR and not (partial and finding.id not in _UNREAD) for finding in distinct
    ):
        files = emit_clusters(states, mark=f"{MARK}, from files of {tool}.")
        write_files((*files, *schema_files()), folder, stale=MARK)
    clusters = sum(name is not None for name in states)
    return ImportSummary(findings=distinct, files=files, entities=len(kept), clusters=clusters, sources=sources)


def _unconverted(findings: Sequence[Finding]) -> int:
    return sum(1 for finding in findings if finding.severity is Severity.ERROR)


def _files_of(tool: str, path: str) -> list[str]:
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    files = (entry for entry in folder.rglob("*") if entry.name.endswith(_SUFFIXES[tool]) and entry.is_file())
    # Terraform keeps copies of modules and of the backend's settings there.
    return sorted(str(file) for file in files if ".terraform" not in file.relative_to(folder).parts)


def _read(tool: str, path: str) -> ImportResult:
    try:
        content = read_file(path)
    except UnreadableError as error:
        at = Span(file=path, line=1, column=1)
        finding = Finding(id=error.rule_id, severity=Severity.ERROR, message=str(error), span=at)
        return ImportResult(quotas=(), findings=(finding,))
    readers: Mapping[str, Callable[[bytes, str], ImportResult]] = {
        "jikkou": read_jikkou,
        "strimzi": read_strimzi,
        "terraform": read_terraform,
    }
    return readers[tool](content, path)


def _nothing(tool: str, path: str) -> Finding:
    message = f"found no quota of {tool} here. Check the file and the tool. kafka-quotas export reads the quotas of a cluster"
    return Finding(id="import-nothing-found", severity=Severity.ERROR, message=message, span=Span(file=path, line=1, column=1))


def _by_namespace(quotas: Sequence[ImportedQuota], findings: list[Finding]) -> Iterator[ImportedQuota]:
    """Clusters of one name in several namespaces get names of their own. A quota without a namespace is ambiguous then."""
    namespaces: dict[str | None, set[str]] = {}
    for quota in quotas:
        if quota.namespace is not None:
            namespaces.setdefault(quota.cluster, set()).add(quota.namespace)
    several = {cluster for cluster, names in namespaces.items() if len(names) > 1}
    for quota in quotas:
        if quota.cluster not in several:
            yield quota
        elif quota.namespace is None:
            spaces = ", ".join(map(display_name, sorted(namespaces[quota.cluster])))
            message = f"this names no namespace, while others are in {spaces}. Name it here, or import these files by themselves"
            findings.append(_error("import-ambiguous", message, quota))
        else:
            name = quota.namespace if quota.cluster is None else f"{quota.namespace}/{quota.cluster}"
            yield replace(quota, cluster=name)


def _with_clusters(quotas: Sequence[ImportedQuota], findings: list[Finding]) -> Iterator[ImportedQuota]:
    """All quotas when all or none name a cluster, else those that do."""
    named = sorted({quota.cluster for quota in quotas if quota.cluster is not None})
    for quota in quotas:
        if named and quota.cluster is None:
            message = (
                f"this names no cluster, while other quotas are for {', '.join(display_name(name) for name in named)}. Name it "
                "here, or import these files by themselves"
            )
            findings.append(_error("import-ambiguous", message, quota))
        else:
            yield quota


def _one_each(quotas: Iterator[ImportedQuota], findings: list[Finding]) -> Iterator[ImportedQuota]:
    """Entities that are there once for a cluster; of one that is there twice it is not known which was meant, so neither is."""
    first: dict[tuple[str | None, Entity], ImportedQuota] = {}
    twice = set()
    for quota in quotas:
        place = (quota.cluster, quota.entity)
        earlier = first.setdefault(place, quota)
        if earlier is not quota:
            twice.add(place)
            related = (Related(span=earlier.span, message="the first one"),)
            message = compose("another quota for {entity} exists. The two would overwrite each other", entity=quota.entity)
            findings.append(replace(_error("duplicate-entity", message, quota), related=related))
    yield from (quota for place, quota in first.items() if place not in twice)


def _clean(quotas: Iterator[ImportedQuota], findings: list[Finding]) -> Iterator[ImportedQuota]:
    """Yield the quotas whose names a manifest can have. A name that is probably a mistake is kept, with a warning."""
    for quota in quotas:
        refused = False
        for entity_type, name in quota.entity.parts:
            for rule_id, message in () if name is DEFAULT else name_problems(entity_type, name):
                rule = manifest_rules()[rule_id]
                fatal = rule.severity is Severity.ERROR and not rule.adjustable
                refused = refused or fatal
                severity = Severity.ERROR if fatal else Severity.WARNING
                findings.append(replace(_error(rule_id, escaped(message), quota), severity=severity))
        if not refused:
            yield quota


def _error(rule_id: str, message: str, quota: ImportedQuota) -> Finding:
    return Finding(id=rule_id, severity=Severity.ERROR, message=message, span=quota.span, entity=quota.entity)
