"""What a Spark session needs before it starts: packages, a Java for a driver of its own, and the settings of the user.

Settings are taken as Spark's own programs take them: ``KEY=VALUE`` and a properties file. Values may be secrets.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import javaproperties

from reconciler.errors import FileAccessError, MissingDependencyError, UsageError
from reconciler.logs import log_event
from reconciler.model import escaped

_log: Final = logging.getLogger(__name__)
MINIMUM_JAVA: Final = 17
_INSTALL: Final = "pip install 'kafka-quota-reconciler[traffic]'"
_INSTALL_REMOTE: Final = "pip install 'kafka-quota-reconciler[traffic,connect]'"
_REMOTE: Final = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}


def require_arrow() -> None:
    """Raise ``MissingDependencyError`` unless the packages that read and judge traffic can be imported; they need no Java."""
    try:
        import msgspec
        import numpy
        import pyarrow
    except ImportError as error:
        raise MissingDependencyError(f"the backtest needs {error.name}, which is not installed: {_INSTALL}") from error
    del msgspec, numpy, pyarrow


def require_packages() -> None:
    """Raise ``MissingDependencyError`` unless what the extra ``traffic`` brings can be imported, pandas below 3 included."""
    require_arrow()
    try:
        import pandas
        import pyspark
    except ImportError as error:
        raise MissingDependencyError(f"the backtest needs {error.name}, which is not installed: {_INSTALL}") from error
    del pyspark
    if int(pandas.__version__.split(".")[0]) >= 3:
        raise MissingDependencyError(f"the backtest needs pandas below 3, found {pandas.__version__}: {_INSTALL}")


def require_remote_packages() -> None:
    """Raise ``MissingDependencyError`` unless what a client of Spark Connect needs beside that can be imported."""
    for module, package in _REMOTE.items():
        if not _is_there(module):
            raise MissingDependencyError(f"--remote needs {package}, which is not installed: {_INSTALL_REMOTE}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it would be in
        return False


def require_java() -> None:
    """Raise ``MissingDependencyError`` unless the Java that Spark would start is there and new enough."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    where = f"JAVA_HOME ({home})" if home else "PATH"
    if program is None or not Path(program).exists():
        raise MissingDependencyError(f"the backtest needs Java {MINIMUM_JAVA} or newer, and there is none on {where}")
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingDependencyError(f"the Java on {where} does not start: {error}") from error
    version = _java_major(done.stderr + done.stdout)
    log_event(_log, "Java found", program=program, version=version)
    if version is not None and version < MINIMUM_JAVA:
        raise MissingDependencyError(f"the backtest needs Java {MINIMUM_JAVA} or newer, and {where} has Java {version}")


def _java_major(text: str) -> int | None:
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not match:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major


_PREFIX: Final = "spark."


def read_spark_settings(pairs: Sequence[str], properties_file: Path | None) -> tuple[tuple[str, str], ...]:
    """The settings of ``--properties-file``, then those of ``--conf``, which win.

    Raises ``UsageError`` for a pair without a value or a key that does not begin with ``spark.``, and ``FileAccessError`` for
    a file that cannot be read.
    """
    settings: dict[str, str] = {}
    if properties_file is not None:
        settings |= _properties(properties_file, "--properties-file")
        if wrong := [key for key in settings if not key.startswith(_PREFIX)]:
            raise UsageError(f"{properties_file}: the key {escaped(wrong[0])!r} does not begin with spark.")
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith(_PREFIX):
            raise UsageError(f"--conf takes KEY=VALUE with a key that begins with spark., not {escaped(key)!r}")
        settings[key] = value
    return tuple((key, value.strip()) for key, value in settings.items())


def read_consumer_settings(path: Path) -> tuple[tuple[str, str], ...]:
    """Settings of a Kafka consumer. Raises ``UsageError`` and ``FileAccessError`` as ``read_spark_settings``."""
    return tuple(_properties(path, "--consumer-config").items())


def _properties(path: Path, option: str) -> dict[str, str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"{option} {path} cannot be read: {error.strerror or error}") from error
    try:
        return dict(javaproperties.load(io.BytesIO(content)))
    except ValueError:
        # From None: the library's error repeats a piece of the value.
        raise UsageError(f"{path} is not a Java properties file: it has a malformed \\u escape") from None
