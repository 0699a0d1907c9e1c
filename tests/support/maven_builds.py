"""Builds of the broker plugins with Maven, from copies of their folders."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def digests_of_builds(project: str, folder: Path) -> set[str]:
    """SHA-256 of the jars that two folders and two versions of kafka-clients give; their own tests pass."""
    digests = set()
    for name, version in (("here", "3.9.2"), ("there", "4.4.0")):
        source = folder / name / project
        shutil.copytree(ROOT / project, source, ignore=shutil.ignore_patterns("target"))
        shutil.copy(ROOT / "LICENSE", source.parent / "LICENSE")
        command = ["mvn", "-B", "-q", "package", f"-Dkafka.version={version}"]
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
        assert list((source / "target" / "surefire-reports").glob("*.txt"))
        (jar,) = (source / "target").glob("*.jar")
        digests.add(hashlib.sha256(jar.read_bytes()).hexdigest())
    return digests
