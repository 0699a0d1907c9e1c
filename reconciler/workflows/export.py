"""Adopt a cluster: its quotas as manifests in a folder, or as a snapshot in one file."""

from __future__ import annotations

import enum
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.errors import FileAccessError, UsageError
from reconciler.formats import schema_folder
from reconciler.manifest import (
    MARK,
    SCHEMA_FOLDER,
    Export,
    ExportedFile,
    FilePlace,
    Owner,
    emit,
    owners_by_prefix,
    places_of_owners,
)
from reconciler.model import ClusterSpec, Connection, CurrentState, Entity
from reconciler.ports import QuotaReader
from reconciler.workflows.connect import read_state
from reconciler.workflows.load import load_manifests
from reconciler.workflows.owners import require_owners
from reconciler.workflows.units import with_leaders

_SCHEMAS = ("client-quotas", "cluster", "repository")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What was read and written."""

    state: CurrentState
    export: Export | None = None
    folder: Path | None = None
    snapshot: Path | None = None


class SplitBy(enum.StrEnum):
    """What decides about the folder of an exported entity."""

    OWNER = "owner"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How entities are divided among owners. ``only``: the owners whose entities are written; empty for all."""

    by: SplitBy
    owners: Mapping[str, Owner]
    only: tuple[str, ...] = ()

    def _known(self, state: CurrentState) -> Mapping[str, Owner]:
        return self.owners if self.by is SplitBy.OWNER else owners_by_prefix(state.entities)

    def place(self, state: CurrentState) -> Callable[[Entity], FilePlace]:
        """The folder and owner of each entity."""
        return places_of_owners(self._known(state))

    def narrowed(self, state: CurrentState) -> CurrentState:
        """The state with the entities of the wanted owners. Raises ``UsageError`` for an owner that does not exist."""
        if not self.only:
            return state
        known = self._known(state)
        require_owners(self.only, known)
        place = self.place(state)
        return replace(state, entities={e: q for e, q in state.entities.items() if place(e).owner in self.only})


def owners_to_split(paths: Sequence[str]) -> Mapping[str, Owner]:
    """The owners of the Repository manifest. Raises ``UsageError`` without one."""
    loaded = load_manifests(list(paths) or ["."])
    if not loaded.repository.owners:
        raise UsageError(
            "--split-by owner needs a PATH with a Repository manifest that declares owners. Or use --split-by prefix"
        )
    return loaded.repository.owners


def connection_to_write(
    spec: ClusterSpec,
    *,
    folder: Path,
    bootstrap_server: str | None = None,
    zookeeper: str | None = None,
    command_config: str | None = None,
) -> Connection | None:
    """The connection for the new Cluster manifest; the properties file is named as seen from ``folder``."""
    if bootstrap_server is not None:
        servers = tuple(server.strip() for server in bootstrap_server.split(",") if server.strip())
        connection = Connection(bootstrap_servers=servers, properties=command_config)
        return _seen_from(connection, Path(), folder)
    if zookeeper is not None:
        return _seen_from(Connection(zookeeper=zookeeper.strip(), properties=command_config), Path(), folder)
    if spec.connection is None:
        return None
    return _seen_from(spec.connection, Path(spec.span.file).parent if spec.span else Path(), folder)


def _seen_from(connection: Connection, base: Path, folder: Path) -> Connection:
    if connection.properties is None:
        return connection
    return replace(connection, properties=os.path.relpath(base / connection.properties, folder))


def export_cluster(
    reader: QuotaReader,
    spec: ClusterSpec,
    *,
    folder: Path | None = None,
    overwrite: bool = False,
    snapshot: Path | None = None,
    connection: Connection | None = None,
    split: Split | None = None,
) -> ExportResult:
    """Read the cluster once, then write manifests to ``folder``, a snapshot to ``snapshot``, or both.

    Raises ``UsageError`` when neither is asked for, ``FileAccessError`` when the folder is not empty (without ``overwrite``) or
    cannot be written, ``WrongClusterError`` when the manifests expect another cluster, ``BackendError`` from the reader. Nothing
    is written before the whole cluster was read.
    """
    if folder is None and snapshot is None:
        msg = "name an output: --folder DIR for manifests, --snapshot FILE for a snapshot"
        raise UsageError(msg)
    if folder is not None:
        require_free(folder, overwrite=overwrite)
    state = with_leaders(read_state(spec, reader), reader)
    if spec.name is not None:
        state = replace(state, cluster=state.cluster.named(spec.name))
    made = None
    if folder is not None:
        made = (
            emit(split.narrowed(state), connection=connection, place=split.place(state))
            if split
            else emit(state, connection=connection)
        )
        write_files(made.files, folder)
    if snapshot is not None:
        from reconciler.documents import write_snapshot

        write_snapshot(state, snapshot)
    return ExportResult(state=state, export=made, folder=folder, snapshot=snapshot)


def require_free(folder: Path, *, overwrite: bool) -> None:
    """Raise ``FileAccessError`` when ``folder`` is a file, or has anything in it (unless ``overwrite``)."""
    try:
        occupied = next(folder.iterdir(), None) is not None
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"cannot write manifests to {folder}: {error.strerror}"
        raise FileAccessError(msg) from error
    if occupied and not overwrite:
        msg = f"the folder {folder} is not empty. Nothing was written. Choose another, or pass --overwrite"
        raise FileAccessError(msg)


def write_files(files: Sequence[ExportedFile], folder: Path, *, mark: str = MARK) -> None:
    """Write all files beside their places first, then move them in, so that no file is ever half there.

    Files with this mark, of an earlier run, that are not written again are removed; nothing else is touched. Raises
    ``FileAccessError``.
    """
    stage: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".export-", dir=folder))
        for file in files:
            (stage / file.path).parent.mkdir(parents=True, exist_ok=True)
            (stage / file.path).write_text(file.text, encoding="utf-8", newline="\n")
        schemas = folder / SCHEMA_FOLDER
        schemas.mkdir(exist_ok=True)
        for name in _SCHEMAS:
            source = schema_folder() / f"{name}.v1.schema.json"
            staged = stage / source.name
            staged.write_bytes(source.read_bytes())
            staged.replace(schemas / source.name)
        written = {file.path for file in files}
        stale = [path for path in folder.glob("*.yaml") if path.name not in written and _is_ours(path, mark)]
        for file in files:
            (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
            (stage / file.path).replace(folder / file.path)
        for path in stale:
            path.unlink()
    except OSError as error:
        msg = f"cannot write manifests to {folder}: {error.strerror}"
        raise FileAccessError(msg) from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)


def _is_ours(path: Path, mark: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return mark.encode() in stream.read(500)
