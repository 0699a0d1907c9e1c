"""The Java runtime of this machine, for Kafka and Spark."""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.errors import MissingDependencyError
from reconciler.logs import log_event

MINIMUM_JAVA: Final = 17
"""What brokers of Kafka 4.x and Spark 4.x need."""

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_log: Final = logging.getLogger(__name__)


def find_java(environ: Mapping[str, str] | None = None, *, needed_by: str = "Kafka") -> Path:
    """The ``java`` to use: of ``JAVA_HOME`` when set, else on ``PATH``; both as in ``environ`` (default: the process's own).

    Raises ``MissingDependencyError`` when there is none, or it is older than Java 17. ``needed_by`` begins the message.
    """
    environ = os.environ if environ is None else environ
    needs = f"{needed_by} needs Java {MINIMUM_JAVA} or newer"
    home = environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else environ.get("PATH", os.defpath))
    if java is None:
        where = f"JAVA_HOME ({home})" if home else "PATH"
        raise MissingDependencyError(f"{needs}, and there is none on {where}. Install a Java runtime")
    major = _major_version(java, Path(java).stat().st_mtime_ns)
    log_event(_log, "Java found", program=java, version=major)
    if major is None:
        raise MissingDependencyError(
            f"{java} prints no version that is known. Install Java {MINIMUM_JAVA} or newer, or set JAVA_HOME"
        )
    if major < MINIMUM_JAVA:
        raise MissingDependencyError(f"{needs}, and {java} is Java {major}. Install a newer one, or set JAVA_HOME")
    return Path(java)


@functools.cache
def _major_version(java: str, _modified_ns: int) -> int | None:
    """The major version ``java -version`` prints; ``1.8`` is 8.

    Asked once in a process, and again of a program that was replaced: every answer costs a start of Java.
    """
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    if match is None:
        return None
    major, minor = match.groups()
    return int(minor) if major == "1" and minor else int(major)
