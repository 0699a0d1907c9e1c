"""Adopt a cluster: its quotas as manifests in a folder, or as a snapshot in one file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reconciler.errors import FileAccessError
from reconciler.features.starting.manifests import MARK, SCHEMA_FOLDER, Export, emit
from reconciler.files import write_whole
from reconciler.formats import schema_folder
from reconciler.model import ClusterSpec, Connection, CurrentState, QuotaKey
from reconciler.ports import QuotaReader
from reconciler.workflows import Access, read_state, with_leaders

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
