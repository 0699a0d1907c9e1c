"""Classes of the tests for brokers of the sandbox: a quota plugin, and an agent that gives a broker records from the past."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

from reconciler.features.sandbox.cluster import runtime_for
from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.features.sandbox.spec import SandboxSpec
from tests.support.raw_quotas import RawEntity

SOURCES = Path(__file__).parent / "java"
PLUGIN = "OneLimit"
AGENT = "QuotaRecords"


_RECORDS_VERSION = "4.3.1"
"""Kafka 4.4 has no class that writes the first metadata of a node."""


def _jar(folder: Path, name: str, *, manifest: str = "", kafka_version: str = DEFAULT_KAFKA_VERSION) -> Path:
    """A jar of the class ``name`` of ``SOURCES``, made in ``folder``. Needs ``javac`` beside ``java``."""
    runtime = runtime_for(kafka_version)
    compiler = runtime.java.resolve().with_name("javac")
    path = ":".join(map(str, runtime.jars))
    command: list[str | Path] = [compiler, "-proc:none", "-d", folder, "-cp", path, SOURCES / f"{name}.java"]
    subprocess.run(command, check=True, timeout=120)
    jar = folder / f"{name}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\n{manifest}")
        archive.write(folder / f"{name}.class", f"{name}.class")
    return jar


def with_plugin(folder: Path) -> SandboxSpec:
    """A broker whose ``client.quota.callback.class`` is ``PLUGIN``."""
    return SandboxSpec(plugins=(_jar(folder, PLUGIN),), properties={"client.quota.callback.class": PLUGIN})


def with_records(folder: Path, quotas: Mapping[RawEntity, Mapping[str, float]]) -> SandboxSpec:
    """A broker whose metadata begin with these quotas, whatever today's brokers think of them."""
    lines = folder / "records.tsv"
    rows = []
    for entity, values in quotas.items():
        names = [text for kind, name in sorted(entity, reverse=True) for text in (kind, "<nil>" if name is None else name)]
        rows += ["\t".join((*names, key, repr(value))) for key, value in values.items()]
    lines.write_text("".join(f"{row}\n" for row in rows))
    agent = _jar(folder, AGENT, manifest=f"Premain-Class: {AGENT}\n", kafka_version=_RECORDS_VERSION)
    return SandboxSpec(kafka_version=_RECORDS_VERSION, java_options=(f"-javaagent:{agent}={lines}",))
