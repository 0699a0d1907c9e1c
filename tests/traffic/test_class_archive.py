"""The archive of Spark's classes: written once by the second session, used by later ones, and never the reason why one fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from reconciler.features.sandbox.jars import pyspark_folder
from reconciler.java import find_java
from reconciler.traffic.spark_setup import NO_ARCHIVE, ClassArchive, class_archive, keep_classes
from tests.support.command import environment

SESSION = """
import json
from pathlib import Path
from pyspark import SparkContext
from reconciler.traffic.session import spark_session
from reconciler.traffic.spark_setup import SessionOptions
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
