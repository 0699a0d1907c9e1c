"""The tests of the backtest on Spark that depend most on Spark, with each older PySpark: pip fetches them once into the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lake_tables import pyspark_folder

pytestmark = [pytest.mark.interop, pytest.mark.spark]

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1")
FILES = ("test_session_backtest.py", "test_oracles.py", "test_verdict_rows_command.py")
WARNINGS = ("DeprecationWarning", "FutureWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
"""Those of old versions themselves, such as of distutils and of sockets that stay open."""


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_backtest_passes_its_tests(version: str, file: str) -> None:
    ignored = [part for name in WARNINGS for part in ("-W", f"ignore::{name}")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", *ignored, f"tests/traffic/{file}"]
    environment = {**os.environ, "PYTHONPATH": str(pyspark_folder(version))}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3600, check=False)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
