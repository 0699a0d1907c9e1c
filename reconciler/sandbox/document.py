"""The JSON document about the sandbox that ``sandbox start`` and ``sandbox status`` print. No passwords in it."""

from __future__ import annotations

from reconciler.formats import FORMAT_VERSION, Json
from reconciler.sandbox.background import Status
from reconciler.sandbox.spec import Sandbox


def status_to_json(status: Status) -> dict[str, Json]:
    """The document; its schema is ``sandbox.v1``."""
    return {
        "format_version": FORMAT_VERSION,
        "status": status.condition.value,
        "sandbox": None if status.sandbox is None else _sandbox(status.sandbox, status),
    }


def _sandbox(sandbox: Sandbox, status: Status) -> dict[str, Json]:
    server = sandbox.zookeeper_server
    return {
        "bootstrap_servers": sandbox.bootstrap_servers,
        "sasl_bootstrap_servers": sandbox.sasl_bootstrap_servers,
        "cluster_id": sandbox.cluster_id,
        "kafka_version": sandbox.kafka_version,
        "folder": str(sandbox.folder),
        "users": [{"name": u.name, "client_properties": str(sandbox.client_properties(u.name))} for u in sandbox.users],
        "nodes": [
            {
                "id": node.id,
                "pid": node.pid,
                "alive": node.id in status.alive,
                "port": node.port,
                "log_file": str(node.log_file),
                "request_log_file": str(node.request_log_file) if node.request_log_file else None,
            }
            for node in sandbox.nodes
        ],
        "zookeeper": None
        if server is None
        else {
            "connection": server.connection,
            "pid": server.process.pid,
            "alive": status.zookeeper_alive,
            "log_file": str(server.log_file),
        },
    }
