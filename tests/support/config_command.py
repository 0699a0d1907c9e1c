"""Kafka's own ConfigCommand, as a witness of what a broker holds, independent of this tool and of its client library."""

from __future__ import annotations

import subprocess

from reconciler.sandbox.cluster import runtime_for
from reconciler.sandbox.spec import Sandbox


def describe(sandbox: Sandbox, *entity_types: str) -> list[str]:
    """The lines that ``--describe`` prints for all entities of these types (``users``, ``clients``, ``ips``)."""
    runtime = runtime_for(sandbox.kafka_version)
    command = [str(runtime.java), "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, runtime.jars)), "kafka.admin.ConfigCommand"]
    command += ["--bootstrap-server", sandbox.bootstrap_servers, "--describe"]
    for entity_type in entity_types:
        command += ["--entity-type", entity_type]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.strip()]
