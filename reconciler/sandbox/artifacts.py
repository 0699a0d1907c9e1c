"""Which Kafka versions are pinned, and the exact jar files of each, by SHA-256.

The committed lists are the whole truth: each line is a sum and a path in Maven's repository layout, so one line gives both
the coordinates to fetch and the content to expect. Nothing is resolved transitively, so every way of fetching ends with the
same files. A list is written by ``sha256sum`` over what Maven resolves for ``kafka_2.13``, ``kafka-tools`` without its Connect
parts, and the logging library of that version.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Final

from reconciler.errors import UsageError

DEFAULT_KAFKA_VERSION: Final = "4.3.1"
KAFKA_VERSIONS: Final = (DEFAULT_KAFKA_VERSION, "3.9.2", "2.8.2")
"""The pinned versions, newest first."""
ZOOKEEPER_VERSIONS: Final = ("3.9.2", "2.8.2")
"""Those that can keep their metadata in ZooKeeper, and whose jars carry ZooKeeper and its server; 4.x cannot."""
KRAFT_VERSIONS: Final = (DEFAULT_KAFKA_VERSION, "3.9.2")
"""Those that run without ZooKeeper; to 2.8 that was a preview without quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One jar: its coordinates, and the SHA-256 sum (64 hex digits) of its content."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The file's name in Maven's repository layout, and in ours."""
        return f"{self.name}-{self.version}.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """All jars one Kafka version needs. ``key`` changes when the list does, so old caches are never mistaken for new ones."""

    kafka_version: str
    key: str
    artifacts: tuple[Artifact, ...]


def require_pinned(kafka_version: str) -> None:
    """Raises ``UsageError`` for a version that is not pinned."""
    if kafka_version not in KAFKA_VERSIONS:
        known = ", ".join(KAFKA_VERSIONS)
        raise UsageError(f"the sandbox has no Kafka {kafka_version!r}; the pinned versions are {known}")


def jar_set(kafka_version: str) -> JarSet:
    """The committed list of one pinned version. Raises ``UsageError`` for a version that is not pinned."""
    require_pinned(kafka_version)
    text = (resources.files("reconciler.sandbox") / "sums" / f"{kafka_version}.sha256").read_text("ascii")
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()[:8]
    artifacts = tuple(_artifact(line) for line in text.splitlines())
    return JarSet(kafka_version=kafka_version, key=f"{kafka_version}-{digest}", artifacts=artifacts)


def _artifact(line: str) -> Artifact:
    sha256, path = line.split()
    *group, name, version, _ = path.split("/")
    return Artifact(group=".".join(group), name=name, version=version, sha256=sha256)
