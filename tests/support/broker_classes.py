"""Java classes for brokers of the sandbox: both plugins of the project, a quota plugin of one limit, and an agent.

The agent gives a broker records from the past.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION
from reconciler.features.sandbox.java import runtime_for
from reconciler.features.sandbox.spec import SandboxSpec
from tests.support.raw_quotas import RawEntity

ROOT = Path(__file__).parents[2]
SOURCES = Path(__file__).parent / "java"
PLUGIN = "OneLimit"
AGENT = "QuotaRecords"
GROUP_SETTINGS = {"client.quota.callback.class": "kafkaquotas.callback.GroupQuotaCallback"}

_made = tempfile.TemporaryDirectory()


def compiled(
    folder: Path, sources: Iterable[Path], *others: Path, manifest: str = "", kafka_version: str = DEFAULT_KAFKA_VERSION
) -> Path:
    """A jar of classes, made in ``folder`` with Kafka and other jars. Needs ``javac`` beside ``java``."""
    runtime = runtime_for(kafka_version)
    compiler = runtime.java.resolve().with_name("javac")
    path = ":".join(map(str, (*others, *runtime.jars)))
    # Without the optimising compiler, which takes as long as all the rest.
    command: list[str | Path] = [compiler, "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "--release", "11", "-proc:none"]
    command += ["-d", folder, "-cp", path, *sources]
    subprocess.run(command, check=True, timeout=120)
    jar = folder.with_suffix(".jar")
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\n{manifest}")
        for file in folder.rglob("*.class"):
            archive.write(file, file.relative_to(folder))
    return jar


@functools.cache
def plugin_jar(name: str) -> Path:
    """The jar of ``recorder`` or ``callback``, made once in a process."""
    return compiled(Path(_made.name) / name, (ROOT / name / "src" / "main" / "java").rglob("*.java"))


def with_recorder(spec: SandboxSpec, folder: Path) -> SandboxSpec:
    """The same sandbox, its brokers with the recorder, which writes to ``folder``, on a nearly full disk, too."""
    settings = {
        "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter,kafkaquotas.recorder.QuotaRecorder",
        "quota.recorder.folder": str(folder),
        "quota.recorder.flush.seconds": "1",
        "quota.recorder.free.bytes": str(64 * 1024 * 1024),
    }
    return replace(spec, plugins=(*spec.plugins, plugin_jar("recorder")), properties={**settings, **spec.properties})


def with_groups(spec: SandboxSpec) -> SandboxSpec:
    """The same sandbox, its brokers with the plugin of groups."""
    return replace(spec, plugins=(plugin_jar("callback"),), properties={**GROUP_SETTINGS, **spec.properties})


def ask_java(kafka_version: str, folder: Path, lines: list[str], *, remembers_kinds: bool) -> list[str]:
    """The answers of the class of groups, called as ``lines`` say (``Answers.java`` has their form)."""
    tests = ROOT / "callback" / "src" / "test" / "java" / "kafkaquotas" / "callback"
    runtime = runtime_for(kafka_version)
    jars = (plugin_jar("callback"), *runtime.jars)
    asking = compiled(folder, [tests / "Answers.java", tests / "Entities.java"], *jars, kafka_version=kafka_version)
    command = [str(runtime.java), "-Dfile.encoding=UTF-8", "-cp", ":".join(map(str, (asking, *jars)))]
    command += ["kafkaquotas.callback.Answers", str(remembers_kinds).lower()]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def with_plugin(folder: Path) -> SandboxSpec:
    """A broker whose ``client.quota.callback.class`` is ``PLUGIN``."""
    jar = compiled(folder, [SOURCES / f"{PLUGIN}.java"])
    return SandboxSpec(plugins=(jar,), properties={"client.quota.callback.class": PLUGIN})


def with_records(folder: Path, quotas: Mapping[RawEntity, Mapping[str, float]]) -> SandboxSpec:
    """A broker whose metadata begin with these quotas, whatever today's brokers think of them."""
    lines = folder / "records.tsv"
    rows = []
    for entity, values in quotas.items():
        names = [text for kind, name in sorted(entity, reverse=True) for text in (kind, "<nil>" if name is None else name)]
        rows += ["\t".join((*names, key, repr(value))) for key, value in values.items()]
    lines.write_text("".join(f"{row}\n" for row in rows))
    manifest = f"Premain-Class: {AGENT}\n"
    agent = compiled(folder, [SOURCES / f"{AGENT}.java"], manifest=manifest)
    return SandboxSpec(java_options=(f"-javaagent:{agent}={lines}",))
