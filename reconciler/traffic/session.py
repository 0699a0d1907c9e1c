"""Spark sessions: a quiet local one by default, or one on the master the user names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import MissingDependencyError, TrafficError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM_JAVA: Final = 17
_JAVA_OPTIONS: Final = ("-XX:-UsePerfData", "-XX:+UseParallelGC")
_SMALL_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-Xshare:auto")
_JVM_END_S: Final = 10.0
_INSTALL: Final = "pip install 'kafka-quota-reconciler[traffic]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Where Spark runs and how much memory its driver gets (on a local master that is all of it)."""

    master: str = "local[*]"
    memory: str = "2g"
    shuffle_partitions: int | None = None
    """``None``: twice the cores of a local master, Spark's own default elsewhere."""
    small: bool = False
    """For little input on a local master: less compiling, which is most of what such a run takes."""


@contextmanager
def spark_session(options: SessionOptions | None = None) -> Iterator[SparkSession]:
    """A session for one run, stopped at the end, with its temporary folder removed.

    Raises ``MissingDependencyError`` when pyspark, its companions or Java are missing, ``TrafficError`` when Spark does not
    start.
    """
    options = options or SessionOptions()
    require_packages()
    if options.master.startswith("local"):
        require_java()
    folder = tempfile.mkdtemp(prefix="kafka-quotas-spark-")
    try:
        session = _start(options, folder)
        try:
            yield session
        finally:
            session.stop()
            _end_jvm()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_jvm() -> None:
    """End the Java process too, and wait for it: stopping a session leaves it to die some time after Python."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001 - pyspark has no public way to end what it started
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(_JVM_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - so that a later session starts its own


def require_packages() -> None:
    """Raise ``MissingDependencyError`` unless what the extra ``traffic`` brings can be imported, pandas below 3 included."""
    try:
        import numpy
        import pandas
        import pyarrow
        import pyspark
    except ImportError as error:
        raise MissingDependencyError(f"the backtest needs {error.name}, which is not installed: {_INSTALL}") from error
    del numpy, pyarrow, pyspark
    if int(pandas.__version__.split(".")[0]) >= 3:
        raise MissingDependencyError(f"the backtest needs pandas below 3, found {pandas.__version__}: {_INSTALL}")


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
    if version is not None and version < MINIMUM_JAVA:
        raise MissingDependencyError(f"the backtest needs Java {MINIMUM_JAVA} or newer; {where} has Java {version}")


def _java_major(text: str) -> int | None:
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not found:
        return None
    major = int(found[1])
    return int(found[2]) if major == 1 and found[2] else major


def _start(options: SessionOptions, folder: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    local = options.master.startswith("local")
    # Workers must be the interpreter that has pyarrow, not whatever ``python3`` the machine finds first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(options.master).appName("kafka-quotas backtest")
    for key, value in _settings(options, folder, local=local).items():
        builder = builder.config(key, value)
    start_log = Path(folder) / "start.log"
    start_log.touch()
    try:
        with _stderr_to(start_log):
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("ERROR")
    except (PySparkException, OSError, RuntimeError) as error:
        lines = [*start_log.read_text(errors="replace").splitlines(), *str(error).splitlines()]
        said = next((line for line in lines if "rror" in line or "xception" in line), lines[-1] if lines else repr(error))
        raise TrafficError(f"Spark does not start on {options.master}: {said.strip()}") from error
    return session


def _settings(options: SessionOptions, folder: str, *, local: bool) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.ansi.enabled": "true",
        "spark.driver.memory": options.memory,
        "spark.log.level": "ERROR",
    }
    if local:
        cores = _local_cores(options.master)
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": folder,
            "spark.driver.extraJavaOptions": " ".join(
                (*_JAVA_OPTIONS, f"-Djava.io.tmpdir={folder}", *(_SMALL_JAVA if options.small else ()))
            ),
            "spark.sql.shuffle.partitions": str(options.shuffle_partitions or 2 * cores),
            "spark.default.parallelism": str(cores),
        }
        if options.small:
            settings["spark.sql.codegen.wholeStage"] = "false"
            settings["spark.sql.shuffle.partitions"] = str(options.shuffle_partitions or 1)
    elif options.shuffle_partitions:
        settings["spark.sql.shuffle.partitions"] = str(options.shuffle_partitions)
    return settings


def _local_cores(master: str) -> int:
    found = re.search(r"\[(\d+)", master)
    if found:
        return max(1, int(found[1]))
    return os.cpu_count() or 1 if "[" in master else 1


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Spark's launcher writes banners to stderr before any log setting is read; a started session is not news."""
    sys.stderr.flush()
    saved = os.dup(2)
    sink = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(sink)
