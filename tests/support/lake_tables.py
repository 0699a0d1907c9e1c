"""PySpark 4.1 with the runtimes of Apache Iceberg and Delta Lake, which have none for the version in the virtual environment."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.features.sandbox.jars import Artifact, JarSet, ensure_jars, exclusive
from reconciler.files import cache_folder

PYSPARK: Final = "4.1.4"
ICEBERG: Final = (
    Artifact(
        group="org.apache.iceberg",
        name="iceberg-spark-runtime-4.1_2.13",
        version="1.12.0",
        sha256="3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
)
DELTA: Final = (
    Artifact(
        group="io.delta",
        name="delta-spark_4.1_2.13",
        version="4.4.0",
        sha256="75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    Artifact(
        group="io.delta",
        name="delta-storage",
        version="4.4.0",
        sha256="c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeTables:
    """A catalog in which ``table`` can be made: the settings of a session that knows it, and the name of the table."""

    table: str
    settings: tuple[tuple[str, str], ...]

    def write_properties(self, file: Path) -> None:
        """The settings as the file for ``--properties-file``."""
        file.write_text("".join(f"{key}={value}\n" for key, value in self.settings), "utf-8")


def iceberg_tables(warehouse: Path) -> LakeTables:
    """An Iceberg catalog whose tables are folders below ``warehouse``."""
    catalog = "spark.sql.catalog.lake"
    settings = (
        ("spark.driver.extraClassPath", _jars("iceberg-spark-4.1-1.12.0", ICEBERG)),
        ("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
        (catalog, "org.apache.iceberg.spark.SparkCatalog"),
        (f"{catalog}.type", "hadoop"),
        (f"{catalog}.warehouse", str(warehouse)),
    )
    return LakeTables(table="lake.db.traffic", settings=settings)


def delta_tables(warehouse: Path) -> LakeTables:
    """Delta tables by the folder in which they are, as Delta's own statements name them."""
    settings = (
        ("spark.driver.extraClassPath", _jars("delta-spark-4.1-4.4.0", DELTA)),
        ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"),
        ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
    )
    return LakeTables(table=f"delta.`{warehouse / 'traffic'}`", settings=settings)


def pyspark_folder(version: str) -> Path:
    """Where this PySpark and its py4j are, which pip fetches once."""
    folder = cache_folder() / f"pyspark-{version}"
    with exclusive(folder.with_suffix(".lock")):
        parts = ("pyspark/jars", f"pyspark-{version}.dist-info/RECORD", "py4j")
        if not all((folder / part).exists() for part in parts):
            install = [sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--target", str(folder)]
            subprocess.run([*install, f"pyspark=={version}"], check=True, timeout=1200)
    return folder


def pyspark_variables() -> dict[str, str]:
    """The environment in which Python finds this PySpark before that of the virtual environment."""
    return {"PYTHONPATH": str(pyspark_folder(PYSPARK))}


def _jars(key: str, artifacts: tuple[Artifact, ...]) -> str:
    wanted = JarSet(name="Tables", key=key, artifacts=artifacts)
    return os.pathsep.join(str(jar) for jar in ensure_jars(wanted))
