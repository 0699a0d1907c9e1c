"""A cluster's quotas as manifests: what can be declared as entries, everything else as findings, so that nothing is lost unseen.

Reading the result back gives exactly the declared part of the state. An entity is declared whole or not at all, because a
declared entity loses the known keys that its manifest does not give.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError
from reconciler.files import write_whole
from reconciler.formats import declarable, schema_folder, value_text
from reconciler.manifest import API_VERSION, REPOSITORY_FILE, match_text, name_problems
from reconciler.model import (
    DEFAULT,
    KNOWN_KEYS,
    ClusterSpec,
    Connection,
    CurrentState,
    Entity,
    Finding,
    MetricServer,
    QuotaKey,
    Quotas,
    Severity,
    TrafficPlace,
    escaped,
    in_canonical_order,
    legal_keys,
    manifest_rules,
    rules,
)
from reconciler.ports import QuotaReader
from reconciler.text import number_text
from reconciler.workflows import Access, read_state, with_leaders
from reconciler.yaml import scalar_text

SCHEMA_FOLDER: Final = ".schemas"
"""Where an export puts the schemas that its modelines name; hidden, so never read as manifests."""

MARK: Final = "# Written by kafka-quotas export."
_NEXT: Final = {
    "empty-name": ". Kafka refuses every change of it",
    "ip-invalid": ". Only the brokers know whether it can be changed: kafka-quotas alter asks them",
}
_ENTRIES_PER_FILE: Final = 2000
_GROUPS: Final = {
    ("user",): "users",
    ("client-id",): "client-ids",
    ("user", "client-id"): "users-with-client-ids",
    ("ip",): "ips",
}

_LEGAL: Final = {types: {key.value: key for key in legal_keys(types)} for types in _GROUPS}
"""The keys of an entity of these types, in the order in which they are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """All files by their paths in the folder, the settings last. ``findings`` name what could not be declared."""

    files: Mapping[str, str]
    findings: tuple[Finding, ...]
    declared: int
    cluster_name: str


def emit(state: CurrentState, *, connection: Connection | None = None, settings: Sequence[str] = ()) -> Export:
    """The manifests of a state. ``settings``: more lines for the ``spec`` of the Cluster manifest."""
    name = name_of_cluster(state)
    declared: dict[Entity, Quotas] = {}
    findings: list[Finding] = []
    for entity in in_canonical_order(state.entities):
        quotas = state.entities[entity]
        problems = tuple(undeclarable(entity, quotas))
        findings += problems
        if not problems:
            declared[entity] = quotas
    for node in state.unreadable:
        rule = rules("lint")["unreadable-node"]
        findings.append(Finding(id=rule.id, severity=rule.severity, message=node.message, entity=node.entity))
    files = dict(quota_files(declared, name))
    if lowered := sorted({rule_id for entity in declared for rule_id, _ in _problems_of_names(entity) if _is_error(rule_id)}):
        lint = ", ".join(f"{rule_id}: {Severity.WARNING}" for rule_id in lowered)
        settings_of_rules = f"spec:\n  # The cluster has entities that are errors by default.\n  lint: {{{lint}}}\n"
        files[REPOSITORY_FILE] = _head("Repository", "repository") + settings_of_rules
    files["cluster.yaml"] = _cluster_file(state, name, connection, settings)
    return Export(files=files, findings=tuple(findings), declared=len(declared), cluster_name=name)


def quota_files(entities: Mapping[Entity, Quotas], cluster: str | None, *, mark: str = MARK) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each ClientQuotas manifest of entities that can be declared.

    ``mark``: the comment that names the writer of the files.
    """
    groups: dict[str, list[str]] = {}
    for entity in in_canonical_order(entities):
        groups.setdefault(_GROUPS[entity.types], []).append(_entry(entity, entities[entity]))
    clusters = "" if cluster is None else f"  clusters: [{scalar_text(cluster)}]\n"
    for group, entries in groups.items():
        for number, first in enumerate(range(0, len(entries), _ENTRIES_PER_FILE), start=1):
            stem = group if number == 1 else f"{group}-{number}"
            head = f"{_head('ClientQuotas', 'client-quotas', mark)}metadata: {{name: {stem}}}\nspec:\n"
            yield f"{stem}.yaml", f"{head}{clusters}  quotas:\n{''.join(entries[first : first + _ENTRIES_PER_FILE])}"


def traffic_setting(traffic: MetricServer | TrafficPlace) -> str:
    """The line of a Cluster manifest's ``spec`` that names its traffic."""
    if isinstance(traffic, MetricServer):
        return f"  traffic: {{prometheus: {_quoted(traffic.address)}}}"
    days = "" if traffic.days is None else f", days: {traffic.days}"
    return f"  traffic: {{source: {_quoted(traffic.place)}{days}}}"


def name_of_cluster(state: CurrentState) -> str:
    """Return the cluster's name in the manifests: its own, else its id, else ``kafka``."""
    return state.cluster.name or state.cluster.id or "kafka"


def undeclarable(entity: Entity, quotas: Quotas) -> Iterator[Finding]:
    """Yield a finding for each reason why an entity must be left out; none for one that can be declared."""
    if not entity.is_known:
        yield _warning("entity-not-declarable", f"{escaped(str(entity))}: this tool does not write such entities", entity)
        return
    refused = False
    for rule_id, message in _problems_of_names(entity):
        if not manifest_rules()[rule_id].adjustable and _is_error(rule_id):
            refused = True
            text = f"{escaped(str(entity))}: {message}{_NEXT.get(rule_id, '')}"
            yield _warning("entity-not-declarable", text, entity)
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


def _entry(entity: Entity, quotas: Quotas) -> str:
    legal = _LEGAL[entity.types].values()
    values = ", ".join(f"{key}: {value_text(key, quotas[key])}" for key in legal if key in quotas)
    lines = [f"    - match: {match_text(entity)}", f"      quotas: {{{values}}}"]
    unknown = sorted(quotas.keys() - KNOWN_KEYS)
    lines += [f"      # {escaped(key)}: {number_text(quotas[key])} (not known to this tool, stays as it is)" for key in unknown]
    return "\n".join(lines) + "\n"


def _head(kind: str, schema: str, mark: str = MARK) -> str:
    modeline = f"# yaml-language-server: $schema={SCHEMA_FOLDER}/{schema}.v1.schema.json"
    return f"{modeline}\n{mark}\napiVersion: {API_VERSION}\nkind: {kind}\n"


def _cluster_file(state: CurrentState, name: str, connection: Connection | None, settings: Sequence[str]) -> str:
    lines = [f"metadata: {{name: {scalar_text(name)}}}", "spec:"]
    if state.cluster.id:
        lines.append(f"  clusterId: {scalar_text(state.cluster.id)}")
    if connection is not None:
        lines.append("  connection:")
        if connection.bootstrap_servers:
            lines.append(f"    bootstrapServers: [{', '.join(map(_quoted, connection.bootstrap_servers))}]")
        if connection.zookeeper:
            lines.append(f"    zookeeper: {_quoted(connection.zookeeper)}")
        if connection.properties:
            lines.append(f"    properties: {scalar_text(connection.properties)}")
    lines += ["  prune: never", *settings]
    return _head("Cluster", "cluster") + "\n".join(lines) + "\n"


def _quoted(address: str) -> str:
    text = scalar_text(address)
    return text if text.startswith('"') else f'"{text}"'


def _is_error(rule_id: str) -> bool:
    return manifest_rules()[rule_id].severity is Severity.ERROR


_SCHEMAS = ("client-quotas", "cluster", "repository")


def connection_to_write(spec: ClusterSpec, access: Access, *, folder: Path) -> Connection | None:
    """The connection for the new Cluster manifest; the properties file is named as seen from ``folder``."""
    connection, base = spec.connection, Path(spec.span.file).parent if spec.span else Path()
    if access.bootstrap_server is not None:
        servers = tuple(server.strip() for server in access.bootstrap_server.split(",") if server.strip())
        connection, base = Connection(bootstrap_servers=servers, properties=access.command_config), Path()
    elif access.zookeeper is not None:
        connection, base = Connection(zookeeper=access.zookeeper.strip(), properties=access.command_config), Path()
    if connection is None or connection.properties is None:
        return connection
    return replace(connection, properties=os.path.relpath(base / connection.properties, folder))


def export_cluster(
    reader: QuotaReader, spec: ClusterSpec, access: Access, *, folder: Path | None = None, snapshot: Path | None = None
) -> tuple[CurrentState, Export | None]:
    """Read the cluster once, then write manifests to ``folder``, a snapshot to ``snapshot``, or both.

    Raises ``FileAccessError`` when they cannot be written, ``WrongClusterError`` when the manifests expect another cluster, and
    ``BackendError`` from the reader. Nothing is written before the whole cluster was read.
    """
    state = with_leaders(read_state(spec, reader), reader)
    if spec.name is not None:
        state = replace(state, cluster=state.cluster.named(spec.name))
    made = None
    if folder is not None:
        made = emit(state, connection=connection_to_write(spec, access, folder=folder))
        write_files({**made.files, **schema_files()}, folder, stale=MARK)
    if snapshot is not None:
        from reconciler.documents import write_snapshot

        spread = state.leaders
        if spread is not None and any(QuotaKey.CONTROLLER_MUTATION_RATE in quotas for quotas in state.entities.values()):
            # A backtest charges the deletion of a topic by them, when the topic is gone.
            state = replace(state, leaders=replace(spread, topics=spread.topic_partitions))
        write_snapshot(state, snapshot)
    return state, made


def require_free(folder: Path, *, overwrite: bool) -> None:
    """Raise ``FileAccessError`` when ``folder`` is a file, or has anything but ``.git`` in it (unless ``overwrite``)."""
    try:
        occupied = any(entry.name != ".git" for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileAccessError(f"cannot write manifests to {folder}: {error.strerror}") from error
    if occupied and not overwrite:
        raise FileAccessError(f"the folder {folder} is not empty. Nothing was written. Choose another, or pass --overwrite")


def schema_files() -> dict[str, str]:
    """The schemas that manifests name in their first lines, for editors."""
    schemas = (schema_folder() / f"{name}.v1.schema.json" for name in _SCHEMAS)
    return {f"{SCHEMA_FOLDER}/{schema.name}": schema.read_text(encoding="utf-8") for schema in schemas}


def write_files(files: Mapping[str, str], folder: Path, *, stale: str | None = None) -> None:
    """Write each file whole.

    Files with the mark ``stale``, of an earlier run, that are not written again are removed; nothing else is touched. Raises
    ``FileAccessError``.
    """
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / path, [text])
        for file in folder.glob("*.yaml"):
            if file.name not in files and stale and _has_mark(file, stale):
                file.unlink()
    except OSError as error:
        raise FileAccessError(f"cannot write manifests to {folder}: {error.strerror}") from error


def _has_mark(path: Path, mark: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return mark.encode() in stream.read(500)
