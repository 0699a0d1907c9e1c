"""The record of the one cluster that ``sandbox start`` leaves running: a file in the cache folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from reconciler.errors import FileAccessError, SandboxError
from reconciler.sandbox.login import Login
from reconciler.sandbox.process import ProcessRef
from reconciler.sandbox.spec import Sandbox, SandboxNode, SandboxZooKeeper

_VERSION: Final = 1


def state_file(cache: Path) -> Path:
    """Where the record is; a lock of the same name beside it guards it."""
    return cache / "sandbox" / "default.json"


def save(sandbox: Sandbox, file: Path) -> None:
    """Writes the record whole or not at all, for its owner's eyes only: it holds passwords. Raises ``FileAccessError``."""
    partial = file.with_suffix(".partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            json.dump(_to_json(sandbox), opened, indent=1)
        partial.replace(file)
    except OSError as error:
        raise FileAccessError(f"cannot write {file}: {error.strerror}") from error


def load(file: Path) -> Sandbox | None:
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
            f"{file}, the record of the running sandbox, is damaged or from another version of this tool; "
            "end the Kafka it started by hand, if it still runs, and delete the file"
        ) from error


def _to_json(sandbox: Sandbox) -> dict[str, object]:
    return {
        "version": _VERSION,
        "bootstrap_servers": sandbox.bootstrap_servers,
        "sasl_bootstrap_servers": sandbox.sasl_bootstrap_servers,
        "cluster_id": sandbox.cluster_id,
        "kafka_version": sandbox.kafka_version,
        "folder": str(sandbox.folder),
        "users": [{"name": user.name, "password": user.password} for user in sandbox.users],
        "nodes": [
            {
                "id": node.id,
                "pid": node.process.pid,
                "mark": node.process.mark,
                "port": node.port,
                "log_file": str(node.log_file),
                "request_log_file": str(node.request_log_file) if node.request_log_file else None,
            }
            for node in sandbox.nodes
        ],
        "zookeeper": None if sandbox.zookeeper_server is None else _zookeeper_to_json(sandbox.zookeeper_server),
    }


def _zookeeper_to_json(server: SandboxZooKeeper) -> dict[str, object]:
    return {
        "pid": server.process.pid,
        "mark": server.process.mark,
        "connection": server.connection,
        "log_file": str(server.log_file),
    }


def _zookeeper_from_json(value: Mapping[str, Any]) -> SandboxZooKeeper:
    return SandboxZooKeeper(
        process=ProcessRef(pid=int(value["pid"]), mark=value["mark"]),
        connection=value["connection"],
        log_file=Path(value["log_file"]),
    )


def _from_json(value: Mapping[str, Any]) -> Sandbox:
    if value["version"] != _VERSION:
        raise ValueError(value["version"])
    return Sandbox(
        bootstrap_servers=value["bootstrap_servers"],
        sasl_bootstrap_servers=value["sasl_bootstrap_servers"],
        cluster_id=value["cluster_id"],
        kafka_version=value["kafka_version"],
        folder=Path(value["folder"]),
        users=tuple(Login(name=user["name"], password=user["password"]) for user in value["users"]),
        nodes=tuple(
            SandboxNode(
                id=node["id"],
                process=ProcessRef(pid=int(node["pid"]), mark=node["mark"]),
                port=node["port"],
                log_file=Path(node["log_file"]),
                request_log_file=Path(node["request_log_file"]) if node["request_log_file"] else None,
            )
            for node in value["nodes"]
        ),
        # A record of an earlier release has no such line.
        zookeeper_server=_zookeeper_from_json(found) if (found := value.get("zookeeper")) else None,
    )
