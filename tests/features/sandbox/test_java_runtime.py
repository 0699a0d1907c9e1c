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


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    java(tmp_path / "path", 'openjdk version "11"')
    mine = java(tmp_path / "home" / "bin", 'openjdk version "21.0.1"')
    assert find_java({"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "home")}) == mine


@pytest.mark.parametrize(
    ("words", "variable", "message"),
    [
        ('openjdk version "11.0.2"', "PATH", r"needs Java 17 or newer, and .* is Java 11\."),
        ('java version "1.8.0_392"', "PATH", r"needs Java 17 or newer, and .* is Java 8\."),
        ("hello", "PATH", "prints no version that is known"),
        (None, "PATH", r"needs Java 17 or newer, and there is none on PATH\. Install"),
        (None, "JAVA_HOME", r"none on JAVA_HOME \(/.+\)"),
    ],
)
def test_without_a_java_that_kafka_takes_the_message_names_what_there_is(
    tmp_path: Path, words: str | None, variable: str, message: str
) -> None:
    if words is not None:
        java(tmp_path, words)
    with pytest.raises(MissingDependencyError, match=message):
        find_java({variable: str(tmp_path)})
