"""The recorder for the sandbox's brokers: compiled from its sources, which the package carries, and kept in the cache.

A jar would have to be built wherever the package is built. Compiling takes two seconds, once, and needs a JDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.files import bundled_folder
from reconciler.ports import Progress
from reconciler.sandbox.java import Runtime
from reconciler.sandbox.plugin_jar import plugin_jar

_SOURCES: Final = "recorder/src/main/java"
_PLUGIN: Final = "kafkaquotas/recorder/QuotaRecorder.java"
_REPORTERS: Final = "org.apache.kafka.common.metrics.JmxReporter,kafkaquotas.recorder.QuotaRecorder"


def recorder_settings(folder: Path) -> Mapping[str, str]:
    """The broker settings with which a broker records into ``folder``, soon readable and on a nearly full disk, too."""
    return {
        "metric.reporters": _REPORTERS,
        "quota.recorder.folder": str(folder),
        "quota.recorder.flush.seconds": "1",
        "quota.recorder.free.bytes": str(64 * 1024 * 1024),
    }


def recorder_jar(runtime: Runtime, *, progress: Progress | None = None, cache: Path | None = None) -> Path:
    """The jar, compiled unless these sources were before.

    Raises ``MissingDependencyError`` without a compiler, ``SandboxError`` when it fails.
    """
    sources = bundled_folder(_SOURCES, with_file=_PLUGIN)
    return plugin_jar("recorder", sources, runtime, needed_by="--record", progress=progress, cache=cache)
