"""The cache of jars: complete or not there, whoever writes to it."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import FileAccessError, MissingDependencyError, SandboxError
from reconciler.features.sandbox.jars import Artifact, JarSet, ensure_jars, ivy, maven

CONTENT = {"one": b"first jar", "two": b"second jar"}
ARTIFACTS = tuple(
    Artifact(group="org.example", name=name, version="1.0", sha256=hashlib.sha256(content).hexdigest())
    for name, content in CONTENT.items()
)
SET = JarSet(name="Kafka 1.0", key="1.0-abcd", artifacts=ARTIFACTS)


class Registry:
    """A stand-in for the package registry; counts the fetches."""

    def __init__(self, content: dict[str, bytes] = CONTENT, *, fail: BaseException | None = None) -> None:
        self.content = content
        self.fail = fail
        self.fetches = 0

    def fetch(self, artifacts: Sequence[Artifact], work: Path, jars: Path) -> None:
        self.fetches += 1
        for artifact in artifacts:
            if artifact.name in self.content:
                (jars / artifact.file_name).write_bytes(self.content[artifact.name])
        (jars / "not-asked-for-1.0.jar").write_bytes(b"surplus")
        if self.fail:
            raise self.fail


def get(cache: Path, registry: Registry, **options: Any) -> tuple[Path, ...]:
    return ensure_jars(SET, fetch=registry.fetch, cache=cache, **options)


def unfinished(cache: Path) -> list[Path]:
    return [path for path in (cache / "jars").iterdir() if path.name.startswith(".")]


def test_the_first_use_fetches_and_the_second_does_not(tmp_path: Path) -> None:
    registry = Registry()
    first = get(tmp_path, registry)
    assert [jar.read_bytes() for jar in first] == list(CONTENT.values())
    assert get(tmp_path, registry) == first
    assert registry.fetches == 1


def test_what_a_fetcher_brings_beyond_the_list_is_not_used(tmp_path: Path) -> None:
    assert {jar.name for jar in get(tmp_path, Registry())} == {"one-1.0.jar", "two-1.0.jar"}


@pytest.mark.parametrize("damage", [lambda jar: jar.write_bytes(b"second jaR"), Path.unlink, lambda jar: jar.write_bytes(b"")])
def test_a_damaged_jar_is_noticed_and_fetched_again(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    registry = Registry()
    jars = get(tmp_path, registry)
    damage(jars[1])
    assert get(tmp_path, registry)[1].read_bytes() == CONTENT["two"]
    assert registry.fetches == 2
    assert unfinished(tmp_path) == []


@pytest.mark.parametrize(
    "content", [{"one": b"first jar"}, {"one": b"first jar", "two": b"forged"}], ids=["a file is missing", "a file is forged"]
)
def test_a_fetch_with_wrong_files_is_an_error_and_leaves_nothing(tmp_path: Path, content: dict[str, bytes]) -> None:
    with pytest.raises(SandboxError, match=r"two-1\.0\.jar"):
        get(tmp_path, Registry(content))
    assert not (tmp_path / "jars" / SET.key).exists()
    assert unfinished(tmp_path) == []


def test_a_fetch_that_is_interrupted_at_its_end_does_not_count_as_done(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        get(tmp_path, Registry(fail=KeyboardInterrupt()))
    assert not (tmp_path / "jars" / SET.key).exists()
    assert unfinished(tmp_path) == []


def test_what_a_killed_fetch_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / "jars" / f".{SET.key}.killed"
    (left / "jars").mkdir(parents=True)
    (left / "jars" / "one-1.0.jar").write_bytes(CONTENT["one"])
    get(tmp_path, Registry())
    assert unfinished(tmp_path) == []


def test_without_anything_to_fetch_with_a_full_cache_still_works(tmp_path: Path) -> None:
    fetch = functools.partial(ivy, java=Path("java"), pyspark=None)
    with pytest.raises(MissingDependencyError, match=r"Install Maven, or the extra spark \(kafka-quotas explain install\)"):
        ensure_jars(SET, fetch=fetch, cache=tmp_path)
    get(tmp_path, Registry())
    assert len(ensure_jars(SET, fetch=fetch, cache=tmp_path)) == 2


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 'unknown host registry'; exit 3\n")
    program.chmod(0o755)
    for name, fetch in (
        ("Ivy", functools.partial(ivy, java=program, pyspark=tmp_path)),
        ("Maven", functools.partial(maven, program=program)),
    ):
        with pytest.raises(SandboxError, match=rf"(?s){name} could not fetch .*exit code 3.*unknown host registry"):
            ensure_jars(SET, fetch=fetch, cache=tmp_path)


def test_of_many_at_once_one_fetches_and_all_get_the_jars(tmp_path: Path) -> None:
    together = threading.Barrier(4)
    registry = Registry()

    def one() -> tuple[Path, ...]:
        together.wait(300)
        return get(tmp_path, registry)

    with ThreadPoolExecutor(4) as pool:
        results = [future.result(30) for future in [pool.submit(one) for _ in range(4)]]
    assert registry.fetches == 1
    assert len(set(results)) == 1


def test_a_cache_that_cannot_be_written_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileAccessError, match="KAFKA_QUOTAS_CACHE"):
        get(tmp_path / "file", Registry())
