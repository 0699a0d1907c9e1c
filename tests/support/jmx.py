"""What a broker measures, read from its MBeans with Kafka's own JmxTool."""

from __future__ import annotations

import re
import subprocess

from reconciler.features.sandbox.java import runtime_for

_JMX = "-Dcom.sun.management.jmxremote"
_PROPERTY = re.compile(r',([\w-]+)=("(?:\\.|[^"\\])*"|[^,"]*)')
_ESCAPE = re.compile(r"\\(.)")


def java_options(port: int) -> tuple[str, ...]:
    """What a broker needs on its command line to be read at this port of loopback."""
    settings = (f"port={port}", f"rmi.port={port}", "host=127.0.0.1", "authenticate=false", "ssl=false")
    return ("-Djava.rmi.server.hostname=127.0.0.1", *(f"{_JMX}.{setting}" for setting in settings))


def tags(kafka_version: str, port: int, kind: str, *, attribute: str) -> list[dict[str, str]]:
    """The tags (``user`` as Kafka encodes it, ``client-id`` raw) of every ``kafka.server`` MBean of this type."""
    lines = _properties(kafka_version, port, f"kafka.server:type={kind},*", attribute)
    beans = [line.rpartition(f":{attribute}=")[0] for line in lines]
    return [_tags(name.removeprefix(f"kafka.server:type={kind}")) for name in beans]


def attributes(kafka_version: str, port: int, pattern: str, *names: str) -> dict[str, dict[str, str]]:
    """By the name of each MBean of a pattern, these attributes as text."""
    beans: dict[str, dict[str, str]] = {}
    for line in _properties(kafka_version, port, pattern, *names):
        name, _, value = line.rpartition("=")
        bean, _, attribute = name.rpartition(":")
        beans.setdefault(bean, {})[attribute] = value
    return beans


def _properties(kafka_version: str, port: int, pattern: str, *names: str) -> list[str]:
    """``MBEAN:ATTRIBUTE=VALUE``, one a line, as JmxTool prints it."""
    runtime = runtime_for(kafka_version)
    command = [str(runtime.java), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *runtime.class_options()]
    command += [
        "-Dfile.encoding=UTF-8",
        "-Dsun.stdout.encoding=UTF-8",
        "-cp",
        runtime.class_path,
        "org.apache.kafka.tools.JmxTool",
    ]
    command += ["--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi", "--one-time"]
    command += ["--report-format", "properties", "--object-name", pattern, "--attributes", ",".join(names)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    # The first line is the time.
    return [line for line in done.stdout.splitlines() if line and not line.startswith("time=")]


def _tags(properties: str) -> dict[str, str]:
    assert _PROPERTY.sub("", properties) == "", properties
    return {name: _unquoted(value) for name, value in _PROPERTY.findall(properties)}


def _unquoted(value: str) -> str:
    """Undoes Java's ``ObjectName.quote``."""
    if not value.startswith('"'):
        return value
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], value[1:-1])
