"""Spark sessions: a quiet local one by default, or one on the master the user names."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import reconciler
from reconciler.errors import TrafficError
from reconciler.java import find_java
from reconciler.logs import log_event, timed_event
from reconciler.ports import Progress
from reconciler.traffic.spark_jobs import java_gateway, job_progress, raise_as_sentences
from reconciler.traffic.spark_setup import SessionOptions, require_packages
from reconciler.traffic.spark_versions import refuse_foreign_types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log: Final = logging.getLogger(__name__)
_JAVA_OPTIONS: Final = ("-XX:-UsePerfData", "-XX:+UseParallelGC")
_LIGHT_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LATE_COMPILING: Final = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Java's second compiler gets what runs ten times as often as by default: a method for each row does so within a second."""
_KEPT_MEMORY: Final = str(1024**3)
"""Bytes that a worker's allocator (glibc) keeps for the next arrays. Else the kernel clears new pages for each batch."""
_JAVA_SETTING: Final = "spark.driver.extraJavaOptions"
_JVM_END_S: Final = 10.0
_LISTENER_S: Final = 20.0
_PORTS: Final = {"spark": 7077, "https": 443, "http": 80}
"""Where the address names none, by its scheme."""
_LONGEST_REASON: Final = 300
_ENVIRONMENT_PATHS: Final = {
    "HADOOP_CONF_DIR": None,
    "JAVA_HOME": None,
    "PYSPARK_DRIVER_PYTHON": None,
    "PYSPARK_PYTHON": None,
    "PYTHONPATH": os.pathsep,
    "SPARK_CONF_DIR": None,
    "SPARK_HOME": None,
    "SPARK_LOCAL_DIRS": ",",
    "YARN_CONF_DIR": None,
}
"""Variables with paths that Java and its workers read, and the separator of those that are lists."""
_THROWN: Final = re.compile(r'^(Exception in thread "main" )?org\.apache\.spark\.SparkException: ')
"""In front of a sentence of Spark's launcher."""


@contextmanager
def spark_session(options: SessionOptions | None = None) -> Iterator[SparkSession]:
    """A session for one run, stopped at the end, with its temporary folder removed.

    A program that runs Spark in this process already gets a new session of it, with settings of its own; its Spark keeps its
    master and memory, and goes on running.
    Workers on other machines get this package's code with the session; their Python needs pyarrow, pandas, numpy, and for
    request logs msgspec.
    Raises ``MissingDependencyError`` when pyspark, its companions or Java are missing, ``TrafficError`` when Spark does not
    start, and in place of what Spark raises inside the block.
    """
    options = options or SessionOptions()
    require_packages()
    running = _running_session()
    if running is not None:
        log_event(_log, "running Spark used", where=options.where)
        with raise_as_sentences(options.where):
            yield _session_beside(running, options)
        return
    refuse_foreign_types()
    if not options.submitted:
        find_java(needed_by="the backtest")
        _require_listener(options.where)
    # An executor may still write when its session has stopped.
    with tempfile.TemporaryDirectory(prefix="kafka-quotas-spark-", ignore_cleanup_errors=True) as folder:
        with timed_event(_log, "Spark started", level=logging.INFO, where=options.where) as event:
            session = _start(options, folder)
            event["version"] = session.version
        try:
            with raise_as_sentences(options.where):
                yield session
        finally:
            with contextlib.suppress(Exception):  # a server that has ended needs no goodbye; results are already here
                session.stop()
            _end_jvm()
            log_event(_log, "Spark stopped", level=logging.INFO, where=options.where)


@contextmanager
def spark_with_progress(options: SessionOptions, progress: Progress) -> Iterator[SparkSession]:
    """A session whose start and jobs are reported to ``progress``. Raises ``MissingDependencyError``, ``TrafficError``."""
    progress.step(f"starting Spark on {options.where}")
    with spark_session(options) as session, job_progress(session, progress):
        yield session


def _running_session() -> SparkSession | None:
    """The session of the program around us, if it has one."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _session_beside(running: SparkSession, options: SessionOptions) -> SparkSession:
    """A further session of the running Spark: its own settings and views, the same workers."""
    from pyspark.errors import AnalysisException

    session = running.newSession()
    for key, value in (_query_settings(options) | dict(options.settings)).items():
        try:
            session.conf.set(key, value)
        except AnalysisException:
            log_event(_log, "setting of the running Spark kept", key=key)
    return session


def _require_listener(where: str) -> None:
    """Raise ``TrafficError`` where no master listens. Spark would try for minutes, and print Java's errors."""
    reasons: list[str] = []
    for text in _masters(where):
        try:
            address = urllib.parse.urlsplit(text)
            port = address.port or _PORTS.get(address.scheme, 0)
            socket.create_connection((address.hostname or "", port), _LISTENER_S).close()
        except (OSError, ValueError) as error:
            reasons.append(str(error))
        else:
            return
    if reasons:
        raise TrafficError(f"Spark does not start on {where}: no master answers there ({', '.join(dict.fromkeys(reasons))})")


def _masters(where: str) -> list[str]:
    """The addresses of the masters of ``spark://host:7077,other:7077`` and ``k8s://https://host``; of others there are none."""
    scheme, _, rest = where.partition("://")
    if scheme == "spark":
        return [f"spark://{host}" for host in rest.split(",")]
    return [rest if "://" in rest else f"https://{rest}"] if scheme == "k8s" else []


def _end_jvm() -> None:
    """End the Java process too, and wait for it: stopping a session leaves it to die some time after Python."""
    from pyspark import SparkContext

    gateway = java_gateway()
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


def _start(options: SessionOptions, folder: str) -> SparkSession:
    from pyspark.errors import PySparkException

    start_log = Path(folder) / "start.log"
    start_log.touch()
    try:
        with _stderr_to(start_log), _environment(local=options.local):
            return _started(options, folder)
    except (PySparkException, OSError, RuntimeError) as error:
        lines = [*start_log.read_text(errors="replace").splitlines(), *str(error).splitlines()]
        reason = next((line for line in lines if "rror" in line or "xception" in line), lines[-1] if lines else repr(error))
        raise TrafficError(
            f"Spark does not start on {options.where}: {_THROWN.sub('', reason.strip())[:_LONGEST_REASON]}"
        ) from error


def _started(options: SessionOptions, folder: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("kafka-quotas backtest")
    if not options.submitted:
        builder = builder.master(options.where)
    settings = _with_users(_query_settings(options) | _start_settings(options, folder), options.settings)
    for key, value in settings.items():
        builder = builder.config(key, value)
    if not options.submitted:
        _launch_jvm(settings | {"spark.master": options.where}, folder)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if not options.local:
        code = code_archive(Path(folder))
        if code is not None:
            session.sparkContext.addPyFile(str(code))
    return session


def _launch_jvm(settings: Mapping[str, str], folder: str) -> None:
    """Start Java in an empty folder below ``folder``.

    Java's working directory is that of its Python workers, which look for modules there. The user's directory may be the work
    tree of a pull request, whose ``socket.py`` the workers would run.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway as untyped

    if java_gateway() is not None:  # a program that uses us may have a Spark of its own
        return
    empty = Path(folder) / "empty"
    empty.mkdir()
    launch_gateway: Any = untyped
    conf = SparkConf().setAll(list(settings.items()))
    gateway = launch_gateway(conf, {"cwd": str(empty)})
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - a builder of sessions takes no gateway


@contextmanager
def _environment(*, local: bool) -> Iterator[None]:
    """Set what Java inherits: safe paths for Python, and no path that is relative to the user's directory."""
    wanted = {"PYTHONSAFEPATH": "1"}
    if local:
        # Workers must be the interpreter that has pyarrow, not whatever ``python3`` the machine finds first.
        wanted |= {name: os.environ.get(name, sys.executable) for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
        # Else Spark looks up the name of the machine, and does not start in a container that cannot resolve its own.
        wanted["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    home = os.environ.get("SPARK_HOME") or _installed_spark()
    if home is not None:
        wanted["SPARK_HOME"] = home
    for name, separator in _ENVIRONMENT_PATHS.items():
        value = wanted.get(name, os.environ.get(name))
        if value is not None:
            wanted[name] = _absolute(value, separator, programs=name.endswith("_PYTHON"))
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _installed_spark() -> str | None:
    """Return the folder of Spark that pip made. Spark's own search begins in the user's directory: ``../bin/spark-submit``."""
    import pyspark

    package = Path(pyspark.__file__).parent
    homes = (package / "spark-distribution", package)
    return next((str(home) for home in homes if (home / "bin" / "spark-submit").is_file() and (home / "jars").is_dir()), None)


def _absolute(value: str, separator: str | None, *, programs: bool) -> str:
    """The paths from the root. A program without a slash is looked up, and an empty path names nothing."""
    paths = [path for path in (value.split(separator) if separator else [value]) if path]
    return (separator or "").join(path if programs and os.sep not in path else str(Path(path).absolute()) for path in paths)


def _query_settings(options: SessionOptions) -> dict[str, str]:
    """Return the settings that any session may make for its own queries, in the Spark of another program, too."""
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 1024 * 1024),
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # else of 96 bits, which readers take as local times
        "spark.sql.legacy.createHiveTableByDefault": "false",  # else Spark 3.5 makes tables of text, and only with Hive
    }
    if options.local:
        settings["spark.sql.shuffle.partitions"] = str(1 if options.small else 2 * _local_cores(options.where))
    return settings


def _start_settings(options: SessionOptions, folder: str) -> dict[str, str]:
    """Return the settings that only the program that starts Spark decides."""
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.executorEnv.PYTHONSAFEPATH": "1",  # workers run no module of the directory that they are started in
        "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": _KEPT_MEMORY,
        "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": _KEPT_MEMORY,
    }
    if options.submitted:
        return settings
    settings |= {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": f"{folder}/warehouse", "spark.driver.memory": "2g"}
    if options.local:
        light = _LIGHT_JAVA if options.small or options.light else _LATE_COMPILING
        java = (*_JAVA_OPTIONS, f"-Djava.io.tmpdir={folder}", *light)
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": folder,
            "spark.shuffle.compress": "false",  # blocks have narrow numbers, and packing them takes longer than writing them
            _JAVA_SETTING: " ".join(java),
            "spark.default.parallelism": str(_local_cores(options.where)),
        }
        if options.small:
            settings["spark.sql.codegen.wholeStage"] = "false"
    return settings


def _with_users(settings: Mapping[str, str], users: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The user's settings win; options of Java stand behind those of this module."""
    whole = dict(settings)
    for key, value in users:
        whole[key] = f"{settings[key]} {value}" if key == _JAVA_SETTING and key in settings else value
    return whole


def _local_cores(master: str) -> int:
    match = re.search(r"\[(\d+)", master)
    if match:
        return max(1, int(match[1]))
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


_WRITTEN: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive: equal code, equal bytes."""


def code_archive(folder: Path) -> Path | None:
    """A zip of all modules, written into ``folder``; ``None`` where we run from a wheel that was handed to ``spark-submit``."""
    root = Path(reconciler.__file__).parent
    if not root.is_dir():
        return None
    archive = folder / "reconciler.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as code:
        for path in sorted(root.rglob("*.py")):
            entry = zipfile.ZipInfo(str(path.relative_to(root.parent)), _WRITTEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            code.writestr(entry, path.read_bytes())
    return archive
