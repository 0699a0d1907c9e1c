"""The archive of Spark's classes: written once by the second session, used by later ones, and never the reason why one fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reconciler.features.sandbox.jars import pyspark_folder
from reconciler.java import find_java
from reconciler.traffic.spark_setup import MOST_ARCHIVES, NO_ARCHIVE, ClassArchive, class_archive, keep_classes
from tests.support.command import environment

SESSION = """
import json
from pathlib import Path
from pyspark import SparkContext
from reconciler.traffic.session import SessionOptions, spark_session
with spark_session(SessionOptions(master="local[1]", memory="512m", small=True)) as spark:
    maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
    mapped = {Path(line.split()[-1]).name for line in maps.splitlines() if "spark-classes" in line}
    print(json.dumps([spark.range(7).count(), *mapped]))
"""


@pytest.fixture
def spark_home() -> Path:
    home = pyspark_folder()
    assert home is not None
    return home


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def prepared(spark_home: Path, cache: Path, version: str = "1", **environ: str) -> ClassArchive:
    return class_archive(spark_home, version, {"PATH": os.environ["PATH"], "KAFKA_QUOTAS_CACHE": str(cache), **environ})


def archives(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "spark-classes").glob("*.jsa"))


def write(spark_home: Path, cache: Path, content: bytes, version: str = "1") -> Path:
    """An archive as a JVM would have left it."""
    assert prepared(spark_home, cache, version) == NO_ARCHIVE
    archive = prepared(spark_home, cache, version)
    assert archive.partial is not None
    archive.partial.write_bytes(content)
    keep_classes(archive, 0)
    (file,) = (cache / "spark-classes").glob(f"*.{zlib.crc32(content):08x}.jsa")
    return file


@pytest.mark.large
@pytest.mark.spark
def test_the_second_session_writes_an_archive_and_the_third_maps_it(cache: Path) -> None:
    found = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SESSION],
            env=environment({"KAFKA_QUOTAS_CACHE": str(cache)}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
            check=True,
        )
        found.append((done.stdout.strip(), archives(cache)))
    (file,) = found[1][1]
    assert found == [("[7]", []), ("[7]", [file]), (f'[7, "{file}"]', [file])]
    assert sorted(path.name for path in (cache / "spark-classes").iterdir()) == [file]


def test_one_of_several_sessions_writes(spark_home: Path, cache: Path) -> None:
    assert prepared(spark_home, cache) == NO_ARCHIVE
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda _: prepared(spark_home, cache), range(64)))
    assert sum(archive.written for archive in asked) == 1
    assert all(archive == NO_ARCHIVE for archive in asked if not archive.written)


@pytest.mark.parametrize("change", ["version", "java", "jar"])
def test_an_archive_is_for_one_spark_one_java_and_one_list_of_jars(
    spark_home: Path, cache: Path, tmp_path: Path, change: str
) -> None:
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    for name in ("a.jar", "b.jar"):
        (home / "jars" / name).write_bytes(b"PK")
    file = write(home, cache, b"classes")
    assert prepared(home, cache).java_options[-1] == f"-XX:SharedArchiveFile={file}"
    environ = {}
    if change == "java":
        (tmp_path / "jdk" / "bin").mkdir(parents=True)
        (tmp_path / "jdk" / "bin" / "java").write_text("#!/bin/sh\n")
        (tmp_path / "jdk" / "bin" / "java").chmod(0o755)
        environ["JAVA_HOME"] = str(tmp_path / "jdk")
    elif change == "jar":
        (home / "jars" / "b.jar").write_bytes(b"PK2")
    assert prepared(home, cache, "2" if change == "version" else "1", **environ) == NO_ARCHIVE
    assert archives(cache) == [file.name]


def test_a_damaged_archive_is_removed_and_written_again(spark_home: Path, cache: Path) -> None:
    file = write(spark_home, cache, b"classes")
    file.write_bytes(b"clasSes")
    assert prepared(spark_home, cache) == NO_ARCHIVE
    assert archives(cache) == []
    assert prepared(spark_home, cache).written


@pytest.mark.parametrize("content", [b"", b"of something else", bytes(1 << 20)])
def test_java_starts_and_prints_nothing_with_an_archive_that_it_cannot_use(spark_home: Path, cache: Path, content: bytes) -> None:
    write(spark_home, cache, content)
    archive = prepared(spark_home, cache)
    assert archive.java_options
    done = subprocess.run([find_java(), *archive.java_options, "-version"], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.startswith("openjdk version")


def test_a_session_that_was_cut_short_leaves_the_writing_to_the_next_and_one_that_failed_to_a_later_day(
    spark_home: Path, cache: Path
) -> None:
    assert prepared(spark_home, cache) == NO_ARCHIVE
    keep_classes(prepared(spark_home, cache), None)
    failing = prepared(spark_home, cache)
    assert failing.partial is not None
    failing.partial.write_bytes(b"half")
    keep_classes(failing, 1)
    assert prepared(spark_home, cache) == prepared(spark_home, cache) == NO_ARCHIVE
    assert archives(cache) == []
    (marker,) = (cache / "spark-classes").glob("*.tried")
    yesterday = time.time() - 25 * 3600
    os.utime(marker, (yesterday, yesterday))
    assert prepared(spark_home, cache) == NO_ARCHIVE
    assert prepared(spark_home, cache).written


def test_the_archives_used_last_are_kept(spark_home: Path, cache: Path) -> None:
    for number in range(MOST_ARCHIVES):
        file = write(spark_home, cache, f"classes {number}".encode(), str(number))
        os.utime(file, (number, number))
    assert prepared(spark_home, cache, "0").java_options
    write(spark_home, cache, b"more", "more")
    assert len(archives(cache)) == MOST_ARCHIVES
    assert prepared(spark_home, cache, "0").java_options
    assert prepared(spark_home, cache, "1") == NO_ARCHIVE


@pytest.mark.parametrize(
    "environ",
    [
        {"HADOOP_CONF_DIR": "/etc/hadoop"},
        {"KAFKA_QUOTAS_CACHE": "/dev/null/no"},
        {"KAFKA_QUOTAS_CACHE": "{here}/with a space"},
        {"PATH": "/nowhere"},
    ],
)
def test_without_a_place_or_with_another_class_path_there_is_no_archive(
    spark_home: Path, cache: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    given = {name: value.format(here=tmp_path) for name, value in environ.items()}
    for _ in range(2):
        assert prepared(spark_home, cache, **given) == NO_ARCHIVE
