"""Both ways to fetch, against the real package registry: they bring exactly the committed files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconciler.features.sandbox.jars import (
    KAFKA_VERSIONS,
    Fetcher,
    available_fetchers,
    ensure_jars,
    faults,
    ivy_fetcher,
    jar_set,
    maven_fetcher,
    pyspark_folder,
)
from reconciler.java import find_java

pytestmark = pytest.mark.slow


def maven() -> Fetcher:
    found = shutil.which("mvn")
    if found is None:
        pytest.skip("Maven is not installed, and nobody else needs it")
    return maven_fetcher(Path(found))


def ivy() -> Fetcher:
    pyspark = pyspark_folder()
    assert pyspark is not None
    return ivy_fetcher(find_java(), pyspark)


@pytest.mark.parametrize("version", KAFKA_VERSIONS)
@pytest.mark.parametrize("way", [maven, ivy])
def test_an_empty_cache_is_filled_with_the_listed_files_and_nothing_else(tmp_path: Path, way, version: str) -> None:
    wanted = jar_set(version)
    jars = ensure_jars(wanted, fetchers=lambda: (way(),), cache=tmp_path)
    assert faults(jars[0].parent, wanted.artifacts) == ()
    assert {path.name for path in jars[0].parent.iterdir()} == {artifact.file_name for artifact in wanted.artifacts}
    assert not [path for path in (tmp_path / "jars").iterdir() if path.name.startswith(".")]


def test_this_machine_has_a_way_to_fetch() -> None:
    assert available_fetchers(find_java())
