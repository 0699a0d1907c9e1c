"""How the programs that fetch are chosen, called and believed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reconciler.errors import MissingDependencyError, SandboxError
from reconciler.features.sandbox.jars import Artifact, available_fetchers, maven_fetcher

ARTIFACT = Artifact(group="org.example", name="tool_2.13", version="1.0", sha256="0" * 64)


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_without_maven_and_pyspark_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"Install Maven, or the extra spark \(kafka-quotas explain install\)"):
        available_fetchers(Path("java"), find_pyspark=lambda: None)


def test_maven_is_preferred_and_ivy_is_the_other_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path / "mvn", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    names = [fetcher.name for fetcher in available_fetchers(Path("java"), find_pyspark=lambda: tmp_path)]
    assert [name.split()[0] for name in names] == ["Maven", "Ivy"]


def test_maven_is_asked_for_exactly_the_listed_artifacts_and_nothing_they_depend_on(tmp_path: Path) -> None:
    mvn = program(tmp_path / "mvn", f'cp pom.xml {tmp_path}/seen.xml; echo "$@" > {tmp_path}/arguments')
    work = tmp_path / "work"
    work.mkdir()
    maven_fetcher(mvn).fetch([ARTIFACT], work, work / "jars")
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    dependencies = ET.parse(tmp_path / "seen.xml").findall(".//m:dependency", space)
    assert [[part.text for part in one if part.text] for one in dependencies] == [["org.example", "tool_2.13", "1.0"]]
    assert dependencies[0].findtext(".//m:exclusion/m:artifactId", namespaces=space) == "*"
    assert f"-DoutputDirectory={work}/jars" in (tmp_path / "arguments").read_text()


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    mvn = program(tmp_path / "mvn", "echo 'unknown host registry'; exit 3")
    with pytest.raises(SandboxError, match=r"(?s)mvn could not fetch .*exit code 3.*unknown host registry"):
        maven_fetcher(mvn).fetch([ARTIFACT], tmp_path, tmp_path / "jars")
