"""The one sandbox that keeps running between commands: start, status and stop, and its record in the cache folder."""

from __future__ import annotations

import enum
import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from reconciler.documents import VALUES, Document, row
from reconciler.errors import FileAccessError, SandboxError
from reconciler.features.sandbox import cluster, process
from reconciler.features.sandbox.jars import exclusive
from reconciler.features.sandbox.process import ProcessRef
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxNode, SandboxSpec, SandboxZooKeeper
from reconciler.files import cache_folder
from reconciler.ports import Progress

_VERSION: Final = 1
"""Of the record."""


class Condition(enum.StrEnum):
    """How the recorded sandbox is; ``BROKEN``: at least one of its processes has ended without ``stop``."""

    RUNNING = "running"
    BROKEN = "broken"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The recorded sandbox and how it is; ``alive`` are the ids of the nodes whose process runs."""

    condition: Condition
    """Broken: started, but at least one of its processes has ended since."""
    sandbox: Sandbox | None = None
    alive: frozenset[int] = frozenset()
    zookeeper_alive: bool = False


def sandbox_status(cache: Path | None = None) -> Status:
    """What the record states, compared with the processes there are. Raises ``SandboxError`` for a damaged record."""
    sandbox = read_record(record_file(cache))
    if sandbox is None:
        return Status(condition=Condition.STOPPED)
    alive = frozenset(node.id for node in sandbox.nodes if process.is_alive(node.process))
    server = sandbox.zookeeper_server
    serving = server is not None and process.is_alive(server.process)
    whole = len(alive) == len(sandbox.nodes) and serving == (server is not None)
    condition = Condition.RUNNING if whole else Condition.BROKEN
    return Status(condition=condition, sandbox=sandbox, alive=alive, zookeeper_alive=serving)


def start_sandbox(
    spec: SandboxSpec, *, folder: Path | None = None, progress: Progress | None = None, cache: Path | None = None
) -> tuple[Sandbox, bool]:
    """The running sandbox, and whether this call started it.

    One that runs already is returned as it is when it is of the wanted kind (version, nodes, users' names, logs).
    ``folder`` must not exist, or be empty (default: a temporary folder). Raises ``SandboxError`` when another kind runs, or half
    of one, or it does not start.
    """
    file = record_file(cache)
    with exclusive(file.with_suffix(".lock")):
        now = sandbox_status(cache)
        if now.sandbox is not None:
            if now.condition is Condition.BROKEN:
                raise SandboxError(
                    "a sandbox was started, and some of it has ended (its log may have the reason: "
                    f"{_log_of_the_ended(now.sandbox, now)}). Clear it away with: kafka-quotas sandbox stop"
                )
            if not _is_of_kind(now.sandbox, spec) or (folder is not None and folder.absolute() != now.sandbox.folder):
                raise SandboxError("a sandbox with other settings is running. Stop it first with: kafka-quotas sandbox stop")
            return now.sandbox, False
        chosen = folder or Path(tempfile.gettempdir()) / f"kafka-quotas-sandbox-{secrets.token_hex(6)}"
        keeps = folder is not None
        sandbox = cluster.start(
            spec, chosen, progress=progress, record=lambda made: write_record(replace(made, keeps_folder=keeps), file)
        )
        return replace(sandbox, keeps_folder=keeps), True


def stop_sandbox(cache: Path | None = None) -> Status:
    """End what ``start`` started, whole or half, and remove its record, and its folder unless the user chose it.

    Returns how it was before.

    Raises ``SandboxError`` for a damaged record, and when a process could not be ended (the record stays).
    """
    file = record_file(cache)
    with exclusive(file.with_suffix(".lock")):
        before = sandbox_status(cache)
        if before.sandbox is not None:
            cluster.stop(before.sandbox)
            if left := [ref.pid for ref in before.sandbox.processes if process.is_alive(ref)]:
                raise SandboxError(f"these processes of the sandbox could not be ended: {', '.join(map(str, left))}")
            file.unlink(missing_ok=True)
        return before


def _log_of_the_ended(sandbox: Sandbox, now: Status) -> Path:
    if sandbox.zookeeper_server and not now.zookeeper_alive:
        return sandbox.zookeeper_server.log_file
    return next(node.log_file for node in sandbox.nodes if node.id not in now.alive)


def _is_of_kind(sandbox: Sandbox, spec: SandboxSpec) -> bool:
    return (
        sandbox.kafka_version == spec.kafka_version
        and len(sandbox.nodes) == spec.nodes
        and {user.name for user in sandbox.users} == {user.name for user in spec.users}
        and (sandbox.nodes[0].request_log_file is not None) == spec.request_log
        and (sandbox.nodes[0].recorded_folder is not None) == spec.record
        and sandbox.groups == spec.groups
        and (sandbox.zookeeper is not None) == spec.zookeeper
        and (sandbox.zookeeper or "").partition("/")[2] == spec.zookeeper_server.chroot[1:]
    )


def record_file(cache: Path | None = None) -> Path:
    """The record; a lock of the same name beside it guards it."""
    return (cache_folder() if cache is None else cache) / "sandbox" / "default.json"


def write_record(sandbox: Sandbox, file: Path) -> None:
    """Writes the record whole or not at all, for its owner's eyes only: it has passwords. Raises ``FileAccessError``."""
    partial = file.with_suffix(".partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            json.dump({"version": _VERSION, **asdict(sandbox)}, opened, indent=1, default=str)
        partial.replace(file)
    except OSError as error:
        raise FileAccessError(f"cannot write {file}: {error.strerror}") from error


def read_record(file: Path) -> Sandbox | None:
    """The recorded sandbox, running or not; ``None`` when there is none. Raises ``SandboxError`` for a file it cannot read."""
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SandboxError(f"cannot read {file}, the record of the running sandbox: {error}") from error
    try:
        return _from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise SandboxError(
            f"{file}, the record of the running sandbox, is damaged or from another version of this tool. "
            "End the Kafka it started by hand, if it still runs, and delete the file"
        ) from error


def _from_json(value: Mapping[str, Any]) -> Sandbox:
    if value["version"] != _VERSION:
        raise ValueError(value["version"])
    server = value["zookeeper_server"]
    made = {
        "folder": Path(value["folder"]),
        "users": tuple(Login(**user) for user in value["users"]),
        "nodes": tuple(SandboxNode(**_process_from_json(node)) for node in value["nodes"]),
        "zookeeper_server": SandboxZooKeeper(**_process_from_json(server)) if server else None,
    }
    return Sandbox(**{**{name: value[name] for name in value.keys() - {"version"}}, **made})


def _process_from_json(value: Mapping[str, Any]) -> dict[str, Any]:
    paths = {name: Path(path) for name, path in value.items() if path is not None and name.endswith(("_file", "_folder"))}
    return {**value, **paths, "process": ProcessRef(**value["process"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFile:
    """A user of the local Kafka."""

    name: str
    """Name of the user."""
    client_properties: str
    """A file for --command-config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """A node of the local Kafka."""

    id: int
    """Node id."""
    pid: int
    """Process id."""
    alive: bool
    """True while the process runs."""
    port: int
    """Of the listener without any login."""
    log_file: str
    """Log file of the process."""
    request_log_file: str | None
    """``None`` when requests are not logged."""
    recorded_folder: str | None
    """Folder of the recorder's files. ``None`` without --record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperState:
    """The ZooKeeper of the local Kafka."""

    connection: str
    """Host:port/chroot, as zookeeper.connect takes it."""
    pid: int
    """Process id."""
    alive: bool
    """True while the process runs."""
    log_file: str
    """Log file of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """A local Kafka and how to reach it."""

    sandbox: Sandbox
    folder: str
    """Data and logs. Stop removes it."""
    users: tuple[UserFile, ...]
    """Users who can log in, from --user."""
    nodes: tuple[NodeState, ...]
    """The nodes of the cluster."""
    zookeeper: ZooKeeperState | None
    """The ZooKeeper server. ``None``, or missing, for a cluster without one."""


def state_of_sandbox(status: Status) -> SandboxState | None:
    """How to reach it. ``None``: stopped."""
    sandbox = status.sandbox
    if sandbox is None:
        return None
    server = sandbox.zookeeper_server
    return SandboxState(
        sandbox=sandbox,
        folder=str(sandbox.folder),
        users=tuple(UserFile(name=u.name, client_properties=str(sandbox.client_properties(u.name))) for u in sandbox.users),
        nodes=tuple(
            NodeState(
                id=node.id,
                pid=node.pid,
                alive=node.id in status.alive,
                port=node.port,
                log_file=str(node.log_file),
                request_log_file=str(node.request_log_file) if node.request_log_file else None,
                recorded_folder=str(node.recorded_folder) if node.recorded_folder else None,
            )
            for node in sandbox.nodes
        ),
        zookeeper=None
        if server is None
        else ZooKeeperState(
            connection=server.connection, pid=server.process.pid, alive=status.zookeeper_alive, log_file=str(server.log_file)
        ),
    )


SANDBOX: Final = Document(
    cls=Status,
    name="sandbox",
    title="kafka-quotas sandbox status",
    codec=VALUES.extended(
        {
            Sandbox: row("bootstrap_servers sasl_bootstrap_servers cluster_id kafka_version"),
            SandboxState: row("*sandbox folder users nodes zookeeper"),
            Status: row("status=condition sandbox", sandbox=state_of_sandbox),
        }
    ),
)
