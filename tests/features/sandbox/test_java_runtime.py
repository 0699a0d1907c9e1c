"""Finding Java, and refusing what Kafka refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import MissingDependencyError
from reconciler.java import find_java


def java(folder: Path, words: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "java"
    path.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "words", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19', 'java version "25-ea"']
)
def test_java_17_and_newer_are_taken_from_path(tmp_path: Path, words: str) -> None:
    assert find_java({"PATH": str(tmp_path)} if java(tmp_path, words) else {}) == tmp_path / "java"


@pytest.mark.parametrize(("words", "number"), [('openjdk version "11.0.2"', "11"), ('java version "1.8.0_392"', "8")])
def test_an_older_java_is_refused_in_one_sentence(tmp_path: Path, words: str, number: str) -> None:
    java(tmp_path, words)
    with pytest.raises(MissingDependencyError, match=rf"needs Java 17 or newer, and .* is Java {number}\."):
        find_java({"PATH": str(tmp_path)})


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    java(tmp_path / "path", 'openjdk version "11"')
    mine = java(tmp_path / "home" / "bin", 'openjdk version "21.0.1"')
    assert find_java({"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "home")}) == mine


def test_no_java_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match=r"needs Java 17 or newer, and there is none on PATH\. Install"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match=rf"none on JAVA_HOME \({tmp_path}\)"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_that_says_nothing_is_refused(tmp_path: Path) -> None:
    java(tmp_path, "hello")
    with pytest.raises(MissingDependencyError, match="prints no version that is known"):
        find_java({"PATH": str(tmp_path)})
