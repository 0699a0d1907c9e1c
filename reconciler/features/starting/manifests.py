"""A cluster's quotas as manifests: what can be declared as entries, everything else as comments, so that nothing is lost unseen.

Reading the result back gives exactly the declared part of the state. An entity is declared whole or not at all, because a
declared entity loses the known keys that its manifest does not give.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.formats import declarable, value_text
from reconciler.manifest import API_VERSION, REPOSITORY_FILE, Owner, literal_start, name_problems, owner_of_entity
from reconciler.model import (
    DEFAULT,
    KNOWN_KEYS,
    Connection,
    CurrentState,
    Entity,
    EntityName,
    EntityType,
    Finding,
    MatchKind,
    MetricServer,
    QuotaKey,
    Quotas,
    Selector,
    Severity,
    Span,
    TrafficPlace,
    TypeMatch,
    escaped,
    in_canonical_order,
    legal_keys,
    manifest_rules,
    rules,
)
from reconciler.text import number_text
from reconciler.yaml import scalar_text


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """Where entities are written: a folder, relative and with ``/`` at its end, or empty, and who owns them."""

    folder: str = ""
    owner: str | None = None


SCHEMA_FOLDER: Final = ".schemas"
"""Where an export puts the schemas that its modelines name; hidden, so never read as manifests."""

MARK: Final = "# Written by kafka-quotas export."
_TOP: Final = FilePlace()
_UNALTERABLE: Final = ("empty-name", "ip-invalid")
_ENTRIES_PER_FILE: Final = 2000
_BYTES_PER_FILE: Final = 4 * 1024 * 1024
_GROUPS: Final = {
    ("user",): "users",
    ("client-id",): "client-ids",
    ("user", "client-id"): "users-with-client-ids",
    ("ip",): "ips",
}

_LEGAL: Final = {types: {key.value: key for key in legal_keys(types)} for types in _GROUPS}
"""The keys of an entity of these types, in the order in which they are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file to write; ``path`` is relative to the folder of the export."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """All files, the settings last; what could not be declared is in ``findings`` and as comments in the Cluster manifest."""

    files: tuple[ExportedFile, ...]
    findings: tuple[Finding, ...]
    declared: int
    cluster_name: str


def emit(
    state: CurrentState,
    *,
    connection: Connection | None = None,
    place: Callable[[Entity], FilePlace] = lambda _: _TOP,
    isolate: bool = False,
    traffic: MetricServer | TrafficPlace | None = None,
) -> Export:
    """The manifests of a state.

    ``place``: the folder and the owner of each entity. ``isolate``: let the Cluster manifest isolate owners. ``traffic``: its
    ``spec.traffic``.
    """
    name = name_of_cluster(state)
    groups: dict[tuple[FilePlace, str], list[str]] = {}
    left_out: list[str] = []
    findings: list[Finding] = []
    lowered: set[str] = set()
    declared = 0
    for entity in in_canonical_order(state.entities):
        quotas = state.entities[entity]
        problems = tuple(_undeclarable(entity, quotas))
        if problems:
            findings += problems
            left_out += _commented(entity, quotas, problems)
            continue
        declared += 1
        groups.setdefault((place(entity), _GROUPS[entity.types]), []).append(_entry(entity, quotas))
        lowered.update(rule_id for rule_id, _ in _problems_of_names(entity) if _is_error(rule_id))
    for node in state.unreadable:
        rule = rules("lint")["unreadable-node"]
        findings.append(Finding(id=rule.id, severity=rule.severity, message=node.message, entity=node.entity))
        left_out.append(f"#   {node.message}")
    files = [file for (at, group), entries in groups.items() for file in _quota_files(group, entries, name, at=at)]
    if lowered:
        files.append(_repository_file(sorted(lowered)))
    settings = ["  isolate: owner"] if isolate else []
    if traffic is not None:
        settings.append(traffic_setting(traffic))
    files.append(_cluster_file(state, name, connection, left_out, settings=settings))
    return Export(files=tuple(files), findings=tuple(findings), declared=declared, cluster_name=name)


def traffic_setting(traffic: MetricServer | TrafficPlace) -> str:
    """The line of a Cluster manifest's ``spec`` that names its traffic."""
    if isinstance(traffic, MetricServer):
        return f"  traffic: {{prometheus: {_quoted(traffic.address)}}}"
    days = "" if traffic.days is None else f", days: {traffic.days}"
    return f"  traffic: {{source: {_quoted(traffic.place)}{days}}}"


def name_of_cluster(state: CurrentState) -> str:
    """Return the cluster's name in the manifests: its own, else its id, else ``kafka``."""
    return state.cluster.name or state.cluster.id or "kafka"


def emit_clusters(clusters: Mapping[str | None, Mapping[Entity, Quotas]], *, mark: str) -> tuple[ExportedFile, ...]:
    """The manifests of what was read elsewhere, by the name of the cluster; ``None`` has no Cluster manifest.

    ``mark`` is the comment that names the writer of the files. Raises ``ValueError`` for an entity
    that no manifest can declare.
    """
    files: list[ExportedFile] = []
    lowered: set[str] = set()
    prefixes: set[str] = set()
    for cluster, state in clusters.items():
        prefix = f"{_file_prefix(cluster or 'all', prefixes)}-" if len(clusters) > 1 else ""
        groups: dict[str, list[str]] = {}
        for entity in in_canonical_order(state):
            if problem := next(_undeclarable(entity, state[entity]), None):
                raise ValueError(problem.message)
            groups.setdefault(prefix + _GROUPS[entity.types], []).append(_entry(entity, state[entity]))
            lowered.update(rule_id for rule_id, _ in _problems_of_names(entity) if _is_error(rule_id))
        files += [file for group, entries in groups.items() for file in _quota_files(group, entries, cluster, mark)]
        if cluster is not None:
            text = f"{_head('Cluster', 'cluster', mark)}metadata: {{name: {scalar_text(cluster)}}}\nspec:\n  prune: never\n"
            files.append(ExportedFile(path=f"{prefix}cluster.yaml", text=text))
    if lowered:
        files.append(_repository_file(sorted(lowered), mark))
    return tuple(files)


def _file_prefix(cluster: str, taken: set[str]) -> str:
    """A part of a file name that distinguishes clusters, even those whose names differ only in letters that files cannot have."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", cluster)[:60].strip("-") or "cluster"
    name = next(
        candidate
        for candidate in (plain, *(f"{plain}-{number}" for number in range(2, 10_000)))
        if candidate.lower() not in taken
    )
    taken.add(name.lower())
    return name


def _undeclarable(entity: Entity, quotas: Quotas) -> Iterator[Finding]:
    """Yield a finding for each reason why an entity must be left out; none for one that can be declared."""
    if not entity.is_known:
        yield _warning("entity-not-declarable", f"{escaped(str(entity))}: this tool does not write such entities", entity)
        return
    refused = False
    for rule_id, message in _problems_of_names(entity):
        if not manifest_rules()[rule_id].adjustable and _is_error(rule_id):
            refused = True
            words = ". Kafka refuses every change of it" if rule_id in _UNALTERABLE else ""
            yield _warning("entity-not-declarable", f"{escaped(str(entity))}: {message}{words}", entity)
    if refused:
        return
    legal = _LEGAL[entity.types]
    if not any(key in legal for key in quotas):
        yield _warning("entity-not-declarable", f"{entity}: it has no key that this tool knows", entity)
    for key, value in sorted(quotas.items()):
        if key in KNOWN_KEYS and (key not in legal or not declarable(legal[QuotaKey(key)], value)):
            message = (
                f"{entity}: {key} is {number_text(value)}. Kafka refuses this value today, or stores another number. "
                "Set a valid value, or remove the key with kafka-quotas alter"
            )
            yield _warning("value-not-declarable", message, entity, key)


def _problems_of_names(entity: Entity) -> Iterator[tuple[str, str]]:
    for entity_type, name in entity.parts:
        if name is DEFAULT:
            continue
        if not name:
            yield "empty-name", f"the name of {entity_type} is empty"
        elif not name.isascii() and any(0xD800 <= ord(c) <= 0xDFFF for c in name):
            yield "invalid-utf8", f"the name of {entity_type} is not valid Unicode"
        else:
            yield from name_problems(entity_type, name)


def _warning(rule_id: str, message: str, entity: Entity, key: str | None = None) -> Finding:
    return Finding(id=rule_id, severity=manifest_rules()[rule_id].severity, message=message, entity=entity, key=key)


def _commented(entity: Entity, quotas: Quotas, problems: Sequence[Finding]) -> Iterator[str]:
    yield f"#   {escaped(str(entity))}"
    yield from (f"#     {escaped(key)}: {number_text(value)}" for key, value in sorted(quotas.items()))
    yield from (f"#     ({escaped(problem.message)})" for problem in problems)


def _entry(entity: Entity, quotas: Quotas) -> str:
    match = ", ".join(f"{entity_type}: {_name(name)}" for entity_type, name in entity.parts)
    legal = _LEGAL[entity.types].values()
    values = ", ".join(f"{key}: {value_text(key, quotas[key])}" for key in legal if key in quotas)
    lines = [f"    - match: {{{match}}}", f"      quotas: {{{values}}}"]
    unknown = sorted(quotas.keys() - KNOWN_KEYS)
    lines += [f"      # {escaped(key)}: {number_text(quotas[key])} (not known to this tool, stays as it is)" for key in unknown]
    return "\n".join(lines) + "\n"


def _name(name: EntityName) -> str:
    return "{default: true}" if name is DEFAULT else scalar_text(name)


def _head(kind: str, schema: str, mark: str = MARK, *, folder: str = "") -> str:
    modeline = f"# yaml-language-server: $schema={'../' * folder.count('/')}{SCHEMA_FOLDER}/{schema}.v1.schema.json"
    return f"{modeline}\n{mark}\napiVersion: {API_VERSION}\nkind: {kind}\n"


def _quota_files(
    group: str, entries: Sequence[str], cluster: str | None, mark: str = MARK, *, at: FilePlace = _TOP
) -> Iterator[ExportedFile]:
    owner = "" if at.owner is None else f", owner: {scalar_text(at.owner)}"
    for number, part in enumerate(_parts(entries), start=1):
        stem = group if number == 1 else f"{group}-{number}"
        head = f"{_head('ClientQuotas', 'client-quotas', mark, folder=at.folder)}metadata: {{name: {stem}{owner}}}\nspec:\n"
        clusters = "" if cluster is None else f"  clusters: [{scalar_text(cluster)}]\n"
        yield ExportedFile(path=f"{at.folder}{stem}.yaml", text=f"{head}{clusters}  quotas:\n{''.join(part)}")


def _parts(entries: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for entry in entries:
        if part and (len(part) >= _ENTRIES_PER_FILE or size + len(entry) > _BYTES_PER_FILE):
            yield part
            part, size = [], 0
        part.append(entry)
        size += len(entry)
    if part:
        yield part


def _repository_file(rule_ids: Iterable[str], mark: str = MARK) -> ExportedFile:
    lint = ", ".join(f"{rule_id}: {Severity.WARNING}" for rule_id in rule_ids)
    settings = f"spec:\n  # The cluster has entities that are errors by default.\n  lint: {{{lint}}}\n"
    return ExportedFile(path=REPOSITORY_FILE, text=_head("Repository", "repository", mark) + settings)


def _cluster_file(
    state: CurrentState, name: str, connection: Connection | None, left_out: Sequence[str], *, settings: Sequence[str]
) -> ExportedFile:
    lines = [f"metadata: {{name: {scalar_text(name)}}}", "spec:"]
    if state.cluster.id:
        lines.append(f"  clusterId: {scalar_text(state.cluster.id)}")
    if connection is not None:
        lines += _connection(connection)
    lines += ["  prune: never", *settings]
    if left_out:
        lines += ["# On the cluster, and not declared:", *left_out]
    return ExportedFile(path="cluster.yaml", text=_head("Cluster", "cluster") + "\n".join(lines) + "\n")


def _connection(connection: Connection) -> Iterator[str]:
    yield "  connection:"
    if connection.bootstrap_servers:
        yield f"    bootstrapServers: [{', '.join(_quoted(server) for server in connection.bootstrap_servers)}]"
    if connection.zookeeper:
        yield f"    zookeeper: {_quoted(connection.zookeeper)}"
    if connection.properties:
        yield f"    properties: {scalar_text(connection.properties)}"


def _quoted(address: str) -> str:
    text = scalar_text(address)
    return text if text.startswith('"') else f'"{text}"'


_PREFIX: Final = re.compile(r"[A-Za-z0-9]+[-_.:/]")
_LEAST: Final = 2
"""Entities that make a prefix: one name alone shows no team."""
REST: Final = "platform"
"""The owner of every entity that no prefix lists."""


def places_of_owners(owners: Mapping[str, Owner]) -> Callable[[Entity], FilePlace]:
    """Return a function that gives an entity its folder and owner, by the entities that owners list.

    All other entities belong to the first owner that lists none.
    """
    others = next((name for name, owner in owners.items() if owner.entities is None), None)

    def place(entity: Entity) -> FilePlace:
        name = owner_of_entity(entity, owners) or others
        if name is None:
            return FilePlace()
        paths = owners[name].paths or ()
        return FilePlace(folder=literal_start(paths[0]) if paths else "", owner=name)

    return place


def owners_by_prefix(entities: Iterable[Entity]) -> dict[str, Owner]:
    """An owner for each prefix that two names share, up to the first ``-``, ``_``, ``.``, ``:`` or ``/``; ``REST`` for others."""
    counts: Counter[str] = Counter()
    for entity in entities:
        name = entity.name(EntityType.USER) or entity.name(EntityType.CLIENT_ID)
        if isinstance(name, str) and (match := _PREFIX.match(name)):
            counts[match[0]] += 1
    owners: dict[str, Owner] = {}
    for prefix in sorted(prefix for prefix, count in counts.items() if count >= _LEAST):
        team = prefix[:-1].lower()
        free = (each for each in (team, *(f"{team}-{number}" for number in range(2, 10_000))) if each not in {REST, *owners})
        owner = next(free)
        owners[owner] = _owner(owner, prefix)
    owners[REST] = _owner(REST, None)
    return owners


def _owner(name: str, prefix: str | None) -> Owner:
    entities = None
    if prefix is not None:
        match = TypeMatch(kind=MatchKind.PREFIX, text=prefix)
        entities = tuple(Selector(types=((each.value, match),)) for each in (EntityType.USER, EntityType.CLIENT_ID))
    return Owner(name=name, paths=(f"teams/{name}/**",), entities=entities, span=Span(file="", line=1, column=1))


def owners_yaml(owners: Mapping[str, Owner]) -> str:
    """The field ``owners`` of a Repository manifest, as ``owners_by_prefix`` makes them."""
    lines = ["  owners:"]
    for name, owner in owners.items():
        selectors: Sequence[str] = [
            f"{{{entity_type}: {{prefix: {scalar_text(match.text)}}}}}"
            for selector in owner.entities or ()
            for entity_type, match in selector.types
        ]
        listed = f", entities: [{', '.join(selectors)}]" if selectors else ""
        lines.append(f'    {scalar_text(name)}: {{paths: ["{(owner.paths or ("",))[0]}"]{listed}}}')
    return "\n".join(lines) + "\n"


def _is_error(rule_id: str) -> bool:
    return manifest_rules()[rule_id].severity is Severity.ERROR
